"""The local copy of the node never goes back."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from glasslet.api.meta import ObjectMeta
from glasslet.api.node import Node
from glasslet.node.known_node import KnownNode
from tests.builders.node import NOW


def version(number: int, uid: str = "a", age: int = 0) -> Node:
    meta = ObjectMeta(name="n1", uid=uid, resource_version=str(number), creation_timestamp=NOW + timedelta(seconds=age))
    return Node(metadata=meta)


def held(known: KnownNode) -> tuple[str, str] | None:
    node = known.node
    return None if node is None else (node.metadata.uid, node.metadata.resource_version)


async def test_a_watch_that_lags_behind_our_own_patch_changes_nothing() -> None:
    known = KnownNode()
    known.take(version(9))
    known.take(version(10))
    known.take(version(9))
    assert held(known) == ("a", "10")


async def test_a_node_made_anew_counts_whatever_its_version() -> None:
    known = KnownNode()
    known.take(version(10))
    known.take(version(3, uid="b", age=5))
    known.take(version(11))
    assert held(known) == ("b", "3")


async def test_the_end_of_a_former_node_is_not_the_end_of_its_successor() -> None:
    known = KnownNode()
    known.take(version(10, uid="b"))
    known.forget("a")
    assert held(known) == ("b", "10")
    known.forget("b")
    assert held(known) is None


async def test_subscribers_hear_of_newer_versions_only() -> None:
    known, heard = KnownNode(), []
    known.subscribe(lambda node: heard.append(replace(node.metadata).resource_version))
    for number in (1, 1, 2):
        known.take(version(number))
    assert heard == ["1", "2"]
