"""The probes that a pod's containers declare, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.answers.pods import ProbeDescription
from glasslet.api.lifecycle import Probe
from glasslet.api.pod import Pod
from glasslet.probes.kinds import target_in_words


def probe_descriptions(pod: Pod) -> tuple[ProbeDescription, ...]:
    """Every probe, in the order of the containers. Defaults as Kubernetes has them."""
    return tuple(
        ProbeDescription(
            container=container,
            kind=kind,
            target=target_in_words(probe),
            period=float(probe.period_seconds or 10),
            timeout=float(probe.timeout_seconds or 1),
            failures=probe.failure_threshold or 3,
            successes=probe.success_threshold or 1,
            initial_delay=float(probe.initial_delay_seconds),
        )
        for container, kind, probe in _declared(pod)
    )


def _declared(pod: Pod) -> Iterator[tuple[str, str, Probe]]:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        kinds = (
            ("startup", container.startup_probe),
            ("readiness", container.readiness_probe),
            ("liveness", container.liveness_probe),
        )
        yield from ((container.name, kind, probe) for kind, probe in kinds if probe is not None)
