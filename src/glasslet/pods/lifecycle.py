"""Where a pod is in its life. Pure: no clock, no runtime, no tasks.

            StopRequested / RanToCompletion      ContainersStopped          CleanedUp
    Syncing ─────────────────────────────▶ Terminating ─────────▶ Terminated ─────────▶ Finished
                                            │  ▲                    │  ▲                  │
                                            └──┘ StopRequested      └──┘ StopRequested    └─▶ RemovePod
                                              (grace only shrinks)    (removal is noted)    (once it was removed)

The way is one-way. `removed` says that no source wants the pod any more; only then its remains (sandbox, dead
containers, files) go. Events are past tense, effects imperative; only the worker runs effects.
"""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from glasslet.exchange.facts import Verdict


class Syncing(Struct, frozen=True, kw_only=True):
    """The pod is to run."""


class Terminating(Struct, frozen=True, kw_only=True):
    """Its containers are being stopped. `grace`: seconds they get."""

    grace: int
    verdict: Verdict | None = None
    removed: bool = False


class Terminated(Struct, frozen=True, kw_only=True):
    """No container runs or ever will; volumes and cgroup are being given back."""

    verdict: Verdict | None = None
    removed: bool = False


class Finished(Struct, frozen=True, kw_only=True):
    """Nothing of the pod is in use any more."""

    verdict: Verdict | None = None
    removed: bool = False


State = Syncing | Terminating | Terminated | Finished


class StopRequested(Struct, frozen=True, kw_only=True):
    """A source deleted or removed the pod, or somebody killed it. `grace`: seconds, already at least the minimum."""

    grace: int
    verdict: Verdict | None = None
    removed: bool = False


class RanToCompletion(Struct, frozen=True, kw_only=True):
    """Nothing runs that would have to, and nothing will be started again."""

    grace: int


class ContainersStopped(Struct, frozen=True, kw_only=True):
    """No container runs, every sandbox is stopped."""


class CleanedUp(Struct, frozen=True, kw_only=True):
    """Volumes are torn down, the cgroup is gone."""


Event = StopRequested | RanToCompletion | ContainersStopped | CleanedUp


class Effect(StrEnum):
    """What the worker has to do because of a transition."""

    INTERRUPT_SYNC = "interrupt sync"
    STOP_CONTAINERS = "stop containers"
    CLEAN_UP = "clean up"
    REMOVE_POD = "remove pod"


class ImpossibleTransition(Exception):
    """An event that cannot happen in this state: a bug in the worker."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"{type(event).__name__} cannot happen while {type(state).__name__}")


Step = tuple[State, tuple[Effect, ...]]


def advance(state: State, event: Event) -> Step:
    """The next state and what to do. Raises ImpossibleTransition."""
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


def _while_syncing(state: Syncing, event: Event) -> Step:
    match event:
        case StopRequested():
            stopping = Terminating(grace=event.grace, verdict=event.verdict, removed=event.removed)
            return stopping, (Effect.INTERRUPT_SYNC, Effect.STOP_CONTAINERS)
        case RanToCompletion():
            return Terminating(grace=event.grace), (Effect.STOP_CONTAINERS,)
        case ContainersStopped() | CleanedUp():
            raise ImpossibleTransition(state, event)
        case _:
            assert_never(event)


def _while_terminating(state: Terminating, event: Event) -> Step:
    match event:
        case StopRequested():
            return replace(
                state,
                grace=min(state.grace, event.grace),
                verdict=state.verdict or event.verdict,
                removed=state.removed or event.removed,
            ), ()
        case RanToCompletion():
            return state, ()
        case ContainersStopped():
            return Terminated(verdict=state.verdict, removed=state.removed), (Effect.CLEAN_UP,)
        case CleanedUp():
            raise ImpossibleTransition(state, event)
        case _:
            assert_never(event)


def _while_terminated(state: Terminated, event: Event) -> Step:
    match event:
        case StopRequested():
            return replace(state, removed=state.removed or event.removed), ()
        case RanToCompletion() | ContainersStopped():
            return state, ()
        case CleanedUp():
            ended = Finished(verdict=state.verdict, removed=state.removed)
            return ended, (Effect.REMOVE_POD,) if state.removed else ()
        case _:
            assert_never(event)


def _while_finished(state: Finished, event: Event) -> Step:
    match event:
        case StopRequested():
            if event.removed and not state.removed:
                return replace(state, removed=True), (Effect.REMOVE_POD,)
            return state, ()
        case RanToCompletion() | ContainersStopped() | CleanedUp():
            return state, ()
        case _:
            assert_never(event)
