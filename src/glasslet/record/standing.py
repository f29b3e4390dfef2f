"""A finding that holds as long as its cause: reported when the cause appears or changes, withdrawn when it ends.

self._trouble = StandingFinding(recorder)
...
self._trouble.is_(f"pods from {url}: {reason}")     # may be repeated
self._trouble.over()                                # may be repeated
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from glasslet.api.pod_ref import PodRef

K = TypeVar("K", bound=Hashable)


class FindingRecorder(Protocol):
    """The part of `Recorder` for findings."""

    def finding(self, text: str, *, pod: PodRef | None = None) -> None: ...

    def withdrawn(self, text: str, *, pod: PodRef | None = None) -> None: ...


class StandingFinding:
    """One cause of trouble. `pod` None: the pod that the task works for, else the agent."""

    __slots__ = ("_pod", "_recorder", "_text")

    def __init__(self, recorder: FindingRecorder, *, pod: PodRef | None = None) -> None:
        self._recorder = recorder
        self._pod = pod
        self._text = ""

    def is_(self, text: str) -> None:
        """Reports this trouble, in place of an earlier one."""
        if text != self._text:
            self.over()
            self._text = text
        self._recorder.finding(text, pod=self._pod)

    def over(self) -> None:
        """Withdraws the finding."""
        if self._text:
            self._recorder.withdrawn(self._text, pod=self._pod)
            self._text = ""


class StandingFindings(Generic[K]):
    """Causes of one kind of trouble, by key (a pod's uid, a container's name). Keeps nothing of ended ones."""

    __slots__ = ("_recorder", "_standing")

    def __init__(self, recorder: FindingRecorder) -> None:
        self._recorder = recorder
        self._standing: dict[K, StandingFinding] = {}

    def is_(self, key: K, text: str, *, pod: PodRef | None = None) -> None:
        """Reports this trouble of the key, in place of an earlier one. `pod`: as in `StandingFinding`."""
        if key not in self._standing:
            self._standing[key] = StandingFinding(self._recorder, pod=pod)
        self._standing[key].is_(text)

    def over(self, key: K) -> None:
        """Withdraws the finding of the key."""
        if (standing := self._standing.pop(key, None)) is not None:
            standing.over()
