"""The chains of a node: made once, watched, made again after a flush."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from glasslet.concurrency.clock import LoopClock
from glasslet.host.mounts.program import Ended
from glasslet.node.firewall import EVERY, Firewall
from glasslet.record.store import Record
from tests.fakes.background import in_background
from tests.fakes.inline_threads import InlineThreads

pytestmark = pytest.mark.looptime

CANARY = "KUBE-KUBELET-CANARY"


class Tables:
    """iptables in memory: chains and rules by family and table."""

    def __init__(self, *families: str) -> None:
        self.families = families
        self.chains: set[tuple[str, str, str]] = set()
        self.rules: list[tuple[str, ...]] = []
        self.locked = False
        self.refuses = ""

    def run(self, command: Sequence[str]) -> Ended:
        program, _, _, verb, chain, *rest = command
        if program not in self.families:
            return Ended(None, "", f'exec: "{program}": executable file not found in $PATH')
        if self.locked:
            return Ended(4, "Another app is currently holding the xtables lock", "exit status 4")
        if verb == self.refuses:
            return Ended(2, "no such match", "exit status 2")
        rule = (program, chain, *rest)
        key = (program, rest[rest.index("-t") + 1], chain)
        there = {"-S": chain == "POSTROUTING" or key in self.chains, "-C": rule in self.rules}.get(verb)
        if there is not None:
            return Ended(0 if there else 1, "", "" if there else "exit status 1")
        if verb == "-N":
            if key in self.chains:
                return Ended(1, "Chain already exists.", "exit status 1")
            self.chains.add(key)
        else:
            self.rules.append(rule)
        return Ended(0, "")


class Node:
    def __init__(self, tables: Tables) -> None:
        self.record = Record(clock=LoopClock())
        self.firewall = Firewall(threads=InlineThreads(), recorder=self.record, run=tables.run)


async def test_each_family_has_a_hint_and_canaries_and_ipv4_the_firewall() -> None:
    # behaviours.md §31: "chain KUBE-IPTABLES-HINT in table mangle; chain KUBE-KUBELET-CANARY in mangle, nat and filter
    # watched each minute, loss re-creates the rules"
    tables = Tables("iptables", "ip6tables")
    async with in_background(Node(tables).firewall.run):
        await asyncio.sleep(1)
    canaries = {(p, t, CANARY) for p in tables.families for t in ("mangle", "nat", "filter")}
    hints = {(p, "mangle", "KUBE-IPTABLES-HINT") for p in tables.families}
    assert tables.chains == canaries | hints | {("iptables", "filter", "KUBE-FIREWALL")}
    assert [rule[:2] for rule in tables.rules] == [
        ("iptables", "OUTPUT"),
        ("iptables", "INPUT"),
        ("iptables", "KUBE-FIREWALL"),
    ]


async def test_what_is_there_is_not_made_twice() -> None:
    tables = Tables("iptables")
    for _ in range(2):
        async with in_background(Node(tables).firewall.run):
            await asyncio.sleep(1)
    assert len(tables.rules) == 3


async def test_flushed_tables_are_filled_again_within_a_minute() -> None:
    tables = Tables("iptables")
    async with in_background(Node(tables).firewall.run):
        await asyncio.sleep(1)
        tables.chains.clear()
        tables.rules.clear()
        await asyncio.sleep(EVERY)
        assert len(tables.rules) == 3
        assert ("iptables", "nat", CANARY) in tables.chains


async def test_tables_that_another_program_locks_do_not_count_as_flushed() -> None:
    tables = Tables("iptables")
    async with in_background(Node(tables).firewall.run):
        await asyncio.sleep(1)
        tables.locked = True
        rules, tables.rules = tables.rules, []
        await asyncio.sleep(3 * EVERY)
        assert tables.rules == []
        assert rules


async def test_a_machine_without_iptables_is_left_alone() -> None:
    node = Node(Tables())
    async with in_background(node.firewall.run):
        await asyncio.sleep(3 * EVERY)
    assert node.record.findings() == []


async def test_rules_that_are_refused_are_a_finding() -> None:
    tables = Tables("iptables")
    tables.refuses = "-A"
    node = Node(tables)
    async with in_background(node.firewall.run):
        await asyncio.sleep(1)
    (finding,) = node.record.findings()
    assert "iptables -A KUBE-FIREWALL" in finding
    assert "no such match" in finding
