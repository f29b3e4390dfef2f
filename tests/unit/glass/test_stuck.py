"""Which waits of a pod take too long."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from glasslet.glass.stuck import ALLOWED, CSI_LIMIT, NAMELESS, is_planned, nameless, stuck_wait
from glasslet.record.stations import Station, WaitKind
from glasslet.volumes.csi.driver_calls import CALL_SECONDS
from tests.builders.record import BASE, waiting


@pytest.mark.parametrize("kind", list(ALLOWED))
def test_a_wait_may_last_as_long_as_its_kind_is_given(kind: str) -> None:
    wait = waiting(kind, "something", 0)
    assert stuck_wait([wait], BASE + ALLOWED[kind]) is None
    found = stuck_wait([wait], BASE + ALLOWED[kind] + 1)
    assert found is not None
    assert str(found) == f"no progress: something takes longer than {ALLOWED[kind]:.0f} s"


@pytest.mark.parametrize("kind", sorted(set(WaitKind) - set(ALLOWED) - {WaitKind.PROBE, WaitKind.BACK_OFF}))
def test_a_wait_that_others_end_has_no_limit_unless_its_end_is_known(kind: str) -> None:
    assert stuck_wait([waiting(kind, "something", 0)], BASE + 1e6) is None
    wait = waiting(kind, "something", 0, until=300)
    assert stuck_wait([wait], BASE + 359) is None
    assert stuck_wait([wait], BASE + 361) is not None


def test_probes_are_never_late() -> None:
    probe = waiting(WaitKind.PROBE, "readiness of main", 0, until=10)
    call = replace(waiting(WaitKind.CRI_CALL, "ExecSync", 0), station=Station.PROBES)
    assert stuck_wait([probe, call], BASE + 1e6) is None


def test_what_a_worker_means_to_do_later_is_not_late_while_it_does_something_else() -> None:
    restart = waiting(WaitKind.BACK_OFF, "restart of side", 0, until=10, container="side")
    init = waiting(WaitKind.EXIT, "init container first", 0, container="first")
    assert is_planned(restart)
    assert is_planned(init)
    assert not is_planned(waiting(WaitKind.EXIT, "processes left in cgroup /a", 0))
    assert stuck_wait([restart, init], BASE + 1e6) is None


@pytest.mark.parametrize("verb", ["PullImage", "StopContainer", "ExecSync"])
def test_calls_last_as_long_as_what_they_do(verb: str) -> None:
    assert stuck_wait([waiting(WaitKind.CRI_CALL, verb, 0)], BASE + 7200) is None


def test_hooks_before_the_end_last_as_long_as_the_grace_period() -> None:
    hook = replace(waiting(WaitKind.HOOK, "preStop hook of main", 0), station=Station.STOPPING)
    assert stuck_wait([hook], BASE + 7200) is None


def test_networks_may_be_slow() -> None:
    making = replace(waiting(WaitKind.CRI_CALL, "RunPodSandbox", 0), station=Station.SANDBOX)
    assert stuck_wait([making], BASE + 119) is None
    assert stuck_wait([making], BASE + 121) is not None


def test_of_several_waits_the_oldest_that_takes_too_long_is_found() -> None:
    pull, old, new = (
        waiting(WaitKind.CRI_CALL, "PullImage", 0),
        waiting(WaitKind.API_CALL, "PATCH status", 10, container="main"),
        waiting(WaitKind.VOLUME, "mount", 20),
    )
    found = stuck_wait([new, pull, old], BASE + 600)
    assert found is not None
    assert (found.on, found.since) == ("PATCH status", BASE + 10)
    assert "(container main)" in str(found)


def test_work_without_a_name_may_last_a_minute() -> None:
    assert nameless(NAMELESS, BASE) is None
    found = nameless(NAMELESS + 1, BASE)
    assert found is not None
    assert found.since == BASE - NAMELESS - 1


def test_the_limit_of_a_drivers_call_is_that_of_the_calls() -> None:
    assert CSI_LIMIT == CALL_SECONDS
