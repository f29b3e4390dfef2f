"""What admission looks at: a frozen view of the pod and of the node at that moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from glasslet.api.node import Node
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.exchange.admission import Rejected


class Candidate(Struct, frozen=True, kw_only=True):
    """`node` is None while nobody knows the node object; `allocatable` is what pods may have of the node together;
    `others` are the pods that occupy it now."""

    pod: Pod
    node: Node | None
    allocatable: Mapping[str, Quantity]
    others: tuple[Pod, ...] = ()


Rule = Callable[[Candidate], Rejected | None]
"""One reason to refuse a pod."""


def predicate_failed(name: str, description: str) -> Rejected:
    """The refusal of a scheduler's predicate that is checked again here."""
    return Rejected(reason=name, message=f"Predicate {name} failed: {description}")
