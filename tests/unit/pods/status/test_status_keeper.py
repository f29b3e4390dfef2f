"""How often a status is built."""

from __future__ import annotations

from glasslet.api.pod_status import PodStatus
from glasslet.exchange.facts import StatusFacts, Waiting
from glasslet.pods.lifecycle import Syncing, Terminating
from glasslet.pods.memory import PodMemory
from glasslet.pods.status.status_keeper import StatusKeeper, StatusServices
from tests.builders.observed import observed_pod
from tests.builders.pod import pod
from tests.builders.record import ManualClock


class Builds:
    """Counts builds; every status is the phase Running."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, facts: StatusFacts) -> PodStatus:
        self.count += 1
        return PodStatus(phase="Running", start_time=facts.previous.start_time)


def keeper(builds: Builds) -> StatusKeeper:
    services = StatusServices(
        build=builds,
        publish=lambda pod, status: None,
        probes=lambda ref: {},
        host_ips=tuple,
        finished=lambda pod, status: None,
    )
    return StatusKeeper(services=services, clock=ManualClock(), first=PodStatus())


def test_the_same_facts_are_put_into_a_status_once() -> None:
    builds, memory, seen = Builds(), PodMemory(pod=pod()), observed_pod()
    told = keeper(builds)
    for _ in range(3):
        told.report(memory, seen, Syncing())
    assert builds.count == 1


def test_each_new_fact_is_put_into_a_status() -> None:
    builds, memory, seen = Builds(), PodMemory(pod=pod()), observed_pod()
    told = keeper(builds)
    told.report(memory, seen, Syncing())
    memory.start_failures["main"] = Waiting(reason="CrashLoopBackOff")
    told.report(memory, seen, Syncing())
    told.report(memory, observed_pod(), Syncing())
    told.report(memory, None, Terminating(grace=1))
    assert builds.count == 4
