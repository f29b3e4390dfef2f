"""Stop signals between the API's names and the protocol's numbers."""

from __future__ import annotations

import pytest

from glasslet.runtime.cri.signals import signal_name, signal_number


@pytest.mark.parametrize(
    ("name", "number"), [("", 0), ("SIGTERM", 23), ("SIGKILL", 13), ("SIGRTMIN+3", 38), ("SIGRTMAX-14", 51)]
)
def test_names_and_numbers_go_both_ways(name: str, number: int) -> None:
    assert signal_number(name) == number
    assert signal_name(number) == name


def test_an_unknown_name_is_refused_with_those_allowed() -> None:
    with pytest.raises(ValueError, match=r'invalid value "SIGNONE": allowed: SIGABRT, SIGALRM, .*SIGRTMIN\+n'):
        signal_number("SIGNONE")


def test_a_number_of_a_newer_protocol_is_the_default() -> None:
    assert signal_name(999) == ""
