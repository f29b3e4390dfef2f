"""The agent's own files of pods, and where their logs are."""

from __future__ import annotations

from functools import partial

from glasslet.assembly.foundation import Foundation
from glasslet.host.files.layout import LogLayout
from glasslet.host.files.pod_files import PodFiles
from glasslet.podspec.hostname import pod_hostname


def log_layout(foundation: Foundation) -> LogLayout:
    """Where logs of pods are."""
    return LogLayout(pod_logs_dir=foundation.configuration.pod_logs_dir)


def build_pod_files(foundation: Foundation) -> PodFiles:
    """Files of the agent's own that containers see, and their logs."""
    return PodFiles(
        root=foundation.root,
        logs=log_layout(foundation),
        hostname=partial(pod_hostname, cluster_domain=foundation.configuration.cluster_domain),
        threads=foundation.threads,
        clock=foundation.clock,
    )
