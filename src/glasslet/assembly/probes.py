"""Probes: what runs them, what they say, and what of it outlives the agent."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from glasslet.api.pod_ref import PodRef
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.probes.manager import ProbeManager
from glasslet.probes.memory import ProbeMemory
from glasslet.probes.names import NameResolver
from glasslet.probes.prober import Prober
from glasslet.probes.results import ProbeResults
from glasslet.probes.settings import probe_settings
from glasslet.probes.wanted import LOOPBACK
from glasslet.probes.worker import ProbeReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSide:
    """What answers "do the probes pass?"."""

    manager: ProbeManager
    memory: ProbeMemory


def build_probe_side(
    foundation: Foundation, runtime: RuntimeSide, host_ips: tuple[str, ...], on_change: Callable[[PodRef], None]
) -> ProbeSide:
    """`on_change`: a pod has to be looked at. Raises ValueError for settings that cannot be."""
    settings = probe_settings(os.environ, exec_timeout=foundation.loaded.gates.enabled("ExecProbeTimeout"))
    results = ProbeResults(kept=settings.kept)
    memory = ProbeMemory(
        path=f"{foundation.root.root_dir}/glasslet/probes",
        passing=results.passing,
        threads=foundation.threads,
        recorder=foundation.record,
    )
    manager = ProbeManager(
        probing=Prober(
            runtime=runtime.connection.runtime,
            resolve=NameResolver(threads=foundation.threads),
            recorder=foundation.record,
            settings=settings,
        ),
        results=results,
        memory=memory,
        report=ProbeReport(
            recorder=foundation.record,
            events=foundation.events.pod,
            metrics=foundation.metrics.probes,
            clock=foundation.clock,
        ),
        on_change=on_change,
        node_ip=host_ips[0] if host_ips else LOOPBACK,
    )
    return ProbeSide(manager=manager, memory=memory)
