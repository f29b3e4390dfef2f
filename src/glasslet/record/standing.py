"""A finding that stands as long as its cause does: said when it comes or changes, taken back when the cause is gone.

self._trouble = StandingFinding(recorder)
...
self._trouble.is_(f"pods from {url}: {reason}")     # again and again is fine
self._trouble.over()                                # so is this
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from glasslet.api.pod_ref import PodRef

K = TypeVar("K", bound=Hashable)


class FindingRecorder(Protocol):
    """The part of `Recorder` that this needs."""

    def finding(self, text: str, *, pod: PodRef | None = None) -> None: ...

    def withdrawn(self, text: str, *, pod: PodRef | None = None) -> None: ...


class StandingFinding:
    """One cause of trouble. `pod` None: of the agent, or of the pod that the task works for."""

    __slots__ = ("_pod", "_recorder", "_text")

    def __init__(self, recorder: FindingRecorder, *, pod: PodRef | None = None) -> None:
        self._recorder = recorder
        self._pod = pod
        self._text = ""

    def is_(self, text: str) -> None:
        """This is wrong now, in place of what was."""
        if text != self._text:
            self.over()
            self._text = text
        self._recorder.finding(text, pod=self._pod)

    def over(self) -> None:
        """Nothing is wrong any more."""
        if self._text:
            self._recorder.withdrawn(self._text, pod=self._pod)
            self._text = ""


class StandingFindings(Generic[K]):
    """Causes of one kind of trouble, told apart by a key (a pod's uid, a container's name). Of those that are over
    nothing is kept."""

    __slots__ = ("_recorder", "_standing")

    def __init__(self, recorder: FindingRecorder) -> None:
        self._recorder = recorder
        self._standing: dict[K, StandingFinding] = {}

    def is_(self, key: K, text: str, *, pod: PodRef | None = None) -> None:
        """This is wrong with it now, in place of what was. `pod`: as in `StandingFinding`."""
        if key not in self._standing:
            self._standing[key] = StandingFinding(self._recorder, pod=pod)
        self._standing[key].is_(text)

    def over(self, key: K) -> None:
        """Nothing is wrong with it any more."""
        if (standing := self._standing.pop(key, None)) is not None:
            standing.over()
