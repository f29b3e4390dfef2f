"""Where static pods come from: a folder, a URL."""

from __future__ import annotations

from functools import partial

from glasslet.assembly.foundation import Foundation
from glasslet.sources.desired import DesiredPods
from glasslet.sources.file import FileSource, FileSourceConfig
from glasslet.sources.manifest import ManifestReader
from glasslet.sources.names import API, FILE, HTTP
from glasslet.sources.url import URLSource, URLSourceConfig


def source_kinds(foundation: Foundation) -> list[str]:
    """The sources that have to report before anything is cleaned up."""
    configuration = foundation.configuration
    there = {
        FILE: configuration.static_pod_path,
        HTTP: configuration.static_pod_url,
        API: foundation.clients is not None,
    }
    return [kind for kind, given in there.items() if given]


def build_desired(foundation: Foundation) -> DesiredPods:
    """The desired pods of all sources. Built before what works on them; the intake of pods subscribes to it."""
    return DesiredPods(sources=source_kinds(foundation), clock=foundation.clock, recorder=foundation.record)


def build_static_sources(foundation: Foundation, desired: DesiredPods) -> tuple[FileSource | URLSource, ...]:
    """Those that the configuration names; they deliver into `desired`."""
    configuration = foundation.configuration
    reader = ManifestReader(
        node_name=foundation.node_name,
        prevent_api_references=foundation.loaded.gates.enabled("PreventStaticPodAPIReferences"),
    )
    sources: list[FileSource | URLSource] = []
    if configuration.static_pod_path:
        config = FileSourceConfig(
            paths=(configuration.static_pod_path,), check_seconds=configuration.file_check_frequency
        )
        deliver = partial(desired.update_source, FILE)
        sources.append(FileSource(config=config, reader=reader, deliver=deliver, recorder=foundation.record))
    if configuration.static_pod_url:
        url = URLSourceConfig(
            url=configuration.static_pod_url,
            headers=configuration.static_pod_url_header,
            check_seconds=configuration.http_check_frequency,
        )
        deliver = partial(desired.update_source, HTTP)
        sources.append(URLSource(config=url, reader=reader, deliver=deliver, recorder=foundation.record))
    return tuple(sources)
