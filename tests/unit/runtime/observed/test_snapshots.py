"""Comparing and joining snapshots."""

from __future__ import annotations

from glasslet.runtime.observed.snapshots import differs_from_list, same_content, with_last_ips
from tests.builders.observed import exited_container, observed_container, observed_pod, observed_sandbox

KNOWN = observed_pod(observed_container(image_ref="sha256:1"))


def test_the_time_of_the_read_is_not_content() -> None:
    assert same_content(KNOWN, observed_pod(observed_container(image_ref="sha256:1"), observed_at=9.0))


def test_a_pod_nobody_knows_differs_from_one_that_is_known() -> None:
    assert not same_content(None, KNOWN)
    assert same_content(None, None)


def test_missing_details_of_a_list_are_no_contradiction() -> None:
    listed = observed_pod(observed_container(), sandboxes=(observed_sandbox(ips=()),))
    assert not differs_from_list(KNOWN, listed)


def test_another_state_in_the_list_is_a_contradiction() -> None:
    assert differs_from_list(KNOWN, observed_pod(exited_container()))


def test_another_sandbox_state_in_the_list_is_a_contradiction() -> None:
    assert differs_from_list(KNOWN, observed_pod(observed_container(), sandboxes=(observed_sandbox(ready=False),)))


def test_a_pod_that_only_one_side_has_is_a_contradiction() -> None:
    assert differs_from_list(KNOWN, None)
    assert differs_from_list(None, KNOWN)
    assert not differs_from_list(None, None)


def test_a_sandbox_that_is_not_ready_any_more_keeps_its_last_addresses() -> None:
    dead = observed_pod(sandboxes=(observed_sandbox(ready=False, ips=()),))
    merged = with_last_ips(KNOWN, dead)
    assert merged is not None
    assert merged.sandboxes[0].ips == ("10.0.0.1",)
    assert not merged.sandboxes[0].ready


def test_a_ready_sandbox_without_addresses_has_none() -> None:
    fresh = observed_pod(sandboxes=(observed_sandbox(ips=()),))
    assert with_last_ips(KNOWN, fresh) is fresh


def test_addresses_are_not_passed_on_to_another_sandbox() -> None:
    second = observed_pod(sandboxes=(observed_sandbox(1, ready=False, ips=()),))
    merged = with_last_ips(KNOWN, second)
    assert merged is not None
    assert merged.sandboxes[0].ips == ()
