"""Deadlines by verb. behaviours.md §30: "Timeouts: runtimeRequestTimeout; RunPodSandbox twice that; pull without limit
except cancel; ExecSync = command timeout + runtimeRequestTimeout on the call (0 = no limit) ...; StopContainer =
runtimeRequestTimeout + grace"."""

from __future__ import annotations

from glasslet.runtime.cri.verbs import Timeouts


def test_a_sandbox_may_take_twice_as_long_as_other_calls() -> None:
    assert Timeouts(request=60).run_sandbox == 120


def test_stopping_may_take_the_grace_on_top() -> None:
    assert Timeouts(request=60).stop_container(30) == 90


def test_a_command_may_take_its_own_limit_on_top() -> None:
    assert Timeouts(request=60).exec_sync(2.5) == 62.5


def test_a_command_without_limit_has_no_deadline() -> None:
    assert Timeouts(request=60).exec_sync(0) is None


def test_the_default_is_upstreams_two_minutes() -> None:
    assert Timeouts().request == 120
