"""The decision of admission about a pod, as it passes to the pod workers."""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.object import PodUID


class Admitted(Struct, frozen=True, kw_only=True):
    """The pod may run. `victims` must have ended first: they make room for a critical pod; `shortage` names the first
    resource that they give back."""

    victims: tuple[PodUID, ...] = ()
    shortage: str = ""


class Rejected(Struct, frozen=True, kw_only=True):
    """The pod fails for good. `reason` is CamelCase, `message` for people; the API shows both."""

    reason: str
    message: str


def unexpected(why: str) -> Rejected:
    """The rejection of a pod that does not get the devices, CPUs or memory that it asks for."""
    return Rejected(reason="UnexpectedAdmissionError", message=f"Allocate failed due to {why}, which is unexpected")
