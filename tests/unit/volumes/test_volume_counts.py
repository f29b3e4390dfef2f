"""Figures of volumes."""

from __future__ import annotations

import pytest

from glasslet.volumes.volume_counts import HERE, UNKNOWN_PLUGIN, WANTED, VolumeCounts

SECRET, DISK = "kubernetes.io/secret", "kubernetes.io/empty-dir"


class Told:
    """Everything that was measured, and the clock that it was measured with."""

    def __init__(self) -> None:
        self.now = 100.0
        self.operations: list[tuple[str, str, float, bool]] = []
        self.mounts: list[tuple[str, float]] = []

    def operation(self, plugin: str, operation: str, seconds: float, *, failed: bool) -> None:
        self.operations.append((plugin, operation, seconds, failed))

    def mounted(self, plugin: str, seconds_since_wanted: float) -> None:
        self.mounts.append((plugin, seconds_since_wanted))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def account(told: Told) -> VolumeCounts:
    return VolumeCounts(told, clock=lambda: told.now)


def mount(account: VolumeCounts, told: Told, name: str = "data", *, seconds: float = 1, fails: bool = False) -> None:
    try:
        with account.mounting("u1", name, SECRET):
            told.now += seconds
            if fails:
                raise OSError
    except OSError:
        told.now += 10


def test_a_volume_is_wanted_before_it_is_here(account: VolumeCounts, told: Told) -> None:
    account.wanted("u1", "data")
    assert account.counts() == {(UNKNOWN_PLUGIN, WANTED): 1}
    mount(account, told)
    assert account.counts() == {(SECRET, WANTED): 1, (SECRET, HERE): 1}


def test_the_whole_time_has_all_tries_in_it(account: VolumeCounts, told: Told) -> None:
    mount(account, told, fails=True)
    mount(account, told)
    assert [failed for *_, failed in told.operations] == [True, False]
    assert told.mounts == [(SECRET, 12)]


def test_a_look_at_a_mounted_volume_is_an_operation_and_no_mount(account: VolumeCounts, told: Told) -> None:
    mount(account, told)
    mount(account, told)
    assert told.operations == [(SECRET, "volume_mount", 1, False)] * 2
    assert len(told.mounts) == 1


def test_volumes_of_a_pod_that_ends_are_here_and_not_wanted_until_they_are_off(
    account: VolumeCounts, told: Told
) -> None:
    mount(account, told, "a")
    mount(account, told, "b")
    account.unwanted("u1")
    assert account.counts() == {(SECRET, HERE): 2}
    with account.unmounting("u1", "a", SECRET):
        told.now += 2
    assert told.operations[-1] == (SECRET, "volume_unmount", 2, False)
    assert account.counts() == {(SECRET, HERE): 1}
    account.forget("u1")
    assert account.counts() == {}


def test_a_volume_that_an_earlier_agent_mounted_is_taken_off_as_well(account: VolumeCounts, told: Told) -> None:
    with account.unmounting("u0", "data", DISK):
        pass
    assert told.operations == [(DISK, "volume_unmount", 0, False)]
    assert account.counts() == {}
