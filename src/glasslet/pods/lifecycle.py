"""The life cycle of a pod. Pure: no clock, no runtime, no tasks.

            StopRequested / RanToCompletion      ContainersStopped          CleanedUp
    Syncing ─────────────────────────────▶ Terminating ─────────▶ Terminated ─────────▶ Finished
                                            │  ▲                    │  ▲                  │
                                            └──┘ StopRequested      └──┘ StopRequested
                                              (grace only shrinks)    (removal is noted)

The way is one-way. `removed` says that no source wants the pod any more; only then its remains (sandbox, dead
containers, files) go. Events are in the past tense; the worker acts on the state that they lead to.
"""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from glasslet.exchange.facts import StatusOverride


class Syncing(Struct, frozen=True, kw_only=True):
    """The pod is to run."""


class Terminating(Struct, frozen=True, kw_only=True):
    """Its containers are being stopped. `grace`: seconds they get."""

    grace: int
    verdict: StatusOverride | None = None
    removed: bool = False


class Terminated(Struct, frozen=True, kw_only=True):
    """No container runs or will run; volumes and cgroup are being removed."""

    verdict: StatusOverride | None = None
    removed: bool = False


class Finished(Struct, frozen=True, kw_only=True):
    """The pod uses nothing of the node any more."""

    verdict: StatusOverride | None = None
    removed: bool = False


State = Syncing | Terminating | Terminated | Finished


class StopRequested(Struct, frozen=True, kw_only=True):
    """A source deleted or removed the pod, or it was killed. `grace`: seconds, at least the minimum."""

    grace: int
    verdict: StatusOverride | None = None
    removed: bool = False


class RanToCompletion(Struct, frozen=True, kw_only=True):
    """Nothing runs that would have to, and nothing will be started again."""

    grace: int


class ContainersStopped(Struct, frozen=True, kw_only=True):
    """No container runs, every sandbox is stopped."""


class CleanedUp(Struct, frozen=True, kw_only=True):
    """Volumes are unmounted, the cgroup is removed."""


Event = StopRequested | RanToCompletion | ContainersStopped | CleanedUp


class ImpossibleTransition(Exception):
    """An event that cannot happen in this state: a bug in the worker."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"{type(event).__name__} cannot happen while {type(state).__name__}")


def advance(state: State, event: Event) -> State:
    """The next state. Raises ImpossibleTransition."""
    match state:
        case Syncing():
            return _while_syncing(state, event)
        case Terminating():
            return _while_terminating(state, event)
        case Terminated():
            return _while_terminated(state, event)
        case Finished():
            return _while_finished(state, event)
        case _:
            assert_never(state)


def _while_syncing(state: Syncing, event: Event) -> State:
    match event:
        case StopRequested():
            return Terminating(grace=event.grace, verdict=event.verdict, removed=event.removed)
        case RanToCompletion():
            return Terminating(grace=event.grace)
        case ContainersStopped() | CleanedUp():
            raise ImpossibleTransition(state, event)
        case _:
            assert_never(event)


def _while_terminating(state: Terminating, event: Event) -> State:
    match event:
        case StopRequested():
            return replace(
                state,
                grace=min(state.grace, event.grace),
                verdict=state.verdict or event.verdict,
                removed=state.removed or event.removed,
            )
        case RanToCompletion():
            return state
        case ContainersStopped():
            return Terminated(verdict=state.verdict, removed=state.removed)
        case CleanedUp():
            raise ImpossibleTransition(state, event)
        case _:
            assert_never(event)


def _while_terminated(state: Terminated, event: Event) -> State:
    match event:
        case StopRequested():
            return replace(state, removed=state.removed or event.removed)
        case RanToCompletion() | ContainersStopped():
            return state
        case CleanedUp():
            return Finished(verdict=state.verdict, removed=state.removed)
        case _:
            assert_never(event)


def _while_finished(state: Finished, event: Event) -> State:
    match event:
        case StopRequested():
            return replace(state, removed=state.removed or event.removed)
        case RanToCompletion() | ContainersStopped() | CleanedUp():
            return state
        case _:
            assert_never(event)
