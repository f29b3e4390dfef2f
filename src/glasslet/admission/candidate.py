"""The input of all rules: a frozen view of the pod and of the node at that moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from glasslet.api.node import Node
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.exchange.admission import Rejected


class Candidate(Struct, frozen=True, kw_only=True):
    """`node` is None while the node object is unknown; `allocatable` is the share of the node that all pods may use;
    `others` are the pods that occupy it now."""

    pod: Pod
    node: Node | None
    allocatable: Mapping[str, Quantity]
    others: tuple[Pod, ...] = ()


Rule = Callable[[Candidate], Rejected | None]
"""One reason to refuse a pod."""


def predicate_failed(name: str, description: str) -> Rejected:
    """The refusal by a scheduler's predicate that the node checks again."""
    return Rejected(reason=name, message=f"Predicate {name} failed: {description}")
