"""What the node is told once at the start about its resolver file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from glasslet.assembly.node_facts import tell_resolver_limits


class Told:
    """As much of a foundation as the start needs here."""

    def __init__(self, resolv_conf: str) -> None:
        self.told: list[tuple[str, str, str]] = []
        self.configuration = SimpleNamespace(resolv_conf=resolv_conf, cluster_domain="cluster.local")
        self.events: Any = SimpleNamespace(node=lambda *event: self.told.append(event))


def told_of(path: str) -> list[tuple[str, str, str]]:
    foundation = Told(path)
    tell_resolver_limits(foundation)  # type: ignore[arg-type]
    return foundation.told


def test_a_file_that_fits_is_not_worth_an_event(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 192.0.2.1\nsearch example.org\n")
    assert told_of(str(file)) == []
    assert told_of("") == []


@pytest.mark.parametrize(("searches", "told"), [(29, False), (30, True)])
def test_more_searches_than_pods_can_have_are_an_event_of_the_node(tmp_path: Path, searches: int, told: bool) -> None:
    # behaviours.md §20: "At start the host file is checked: unreadable, more than 32 searches (29 with a cluster
    # domain), one above 253 or all above 2048 characters: event CheckLimitsForResolvConf."
    file = tmp_path / "resolv.conf"
    file.write_text(f"search {' '.join(f's{n}.example' for n in range(searches))}\n")
    found = told_of(str(file))
    text = f"Resolv.conf file '{file}' contains search line consisting of more than 29 domains!"
    assert found == ([("Warning", "CheckLimitsForResolvConf", text)] if told else [])


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    assert told_of(str(tmp_path / "none")) == [
        ("Warning", "CheckLimitsForResolvConf", f"open {tmp_path / 'none'}: No such file or directory")
    ]
