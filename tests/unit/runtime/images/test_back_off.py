"""When a failed pull may be tried again."""

from __future__ import annotations

from glasslet.api.object import PodUID
from glasslet.runtime.images.back_off import PullBackOff

POD = PodUID("u1")


def fail_repeatedly(times: int) -> list[float]:
    """The delays after each of so many failures, each right when the last hold is over."""
    back_off, now, delays = PullBackOff(), 0.0, []
    for _ in range(times):
        hold = back_off.failed(POD, "a", "broken", now)
        delays.append(hold.until - now)
        now = hold.until
    return delays


def test_the_delay_doubles_from_ten_seconds_to_five_minutes() -> None:
    # behaviours.md §7: "Image pull: key `<pod uid>_<image>`; 10 s doubling to 300 s"
    assert fail_repeatedly(8) == [10, 20, 40, 80, 160, 300, 300, 300]


def test_nothing_is_held_before_a_failure() -> None:
    assert PullBackOff().hold(POD, "a", 0) is None


def test_a_pull_is_held_until_the_delay_is_over_and_the_error_is_kept() -> None:
    back_off = PullBackOff()
    back_off.failed(POD, "a", "ErrImagePull: broken", 100)
    held = back_off.hold(POD, "a", 109.9)
    assert held is not None
    assert (held.until, held.error) == (110, "ErrImagePull: broken")
    assert back_off.hold(POD, "a", 110) is None


def test_another_image_and_another_pod_are_not_held() -> None:
    # behaviours.md §7: "Shared by containers of the pod with the same image."
    back_off = PullBackOff()
    back_off.failed(POD, "a", "broken", 0)
    assert back_off.hold(POD, "b", 1) is None
    assert back_off.hold(PodUID("u2"), "a", 1) is None


def test_an_entry_is_forgotten_after_ten_quiet_minutes() -> None:
    # behaviours.md §7: "forgotten after 10 min (2 x cap) without failure"
    back_off = PullBackOff()
    for at in (0, 10, 30):
        back_off.failed(POD, "a", "broken", at)
    back_off.forget_stale(30 + 600)
    assert len(back_off) == 1
    back_off.forget_stale(30 + 601)
    assert len(back_off) == 0


def test_a_failure_after_a_long_quiet_starts_over() -> None:
    back_off = PullBackOff()
    back_off.failed(POD, "a", "broken", 0)
    back_off.failed(POD, "a", "broken", 10)
    assert back_off.failed(POD, "a", "broken", 700).until == 710
