"""A finding that stands as long as its cause does: said when it comes or changes, taken back when the cause is gone.

self._trouble = StandingFinding(recorder)
...
self._trouble.is_(f"pods from {url}: {reason}")     # again and again is fine
self._trouble.over()                                # so is this
"""

from __future__ import annotations

from typing import Protocol

from glasslet.api.pod_ref import PodRef


class Findings(Protocol):
    """The part of `Recorder` that this needs."""

    def finding(self, text: str, *, pod: PodRef | None = None) -> None: ...

    def withdrawn(self, text: str, *, pod: PodRef | None = None) -> None: ...


class StandingFinding:
    """One cause of trouble. `pod` None: of the agent, or of the pod that the task works for."""

    __slots__ = ("_pod", "_recorder", "_text")

    def __init__(self, recorder: Findings, *, pod: PodRef | None = None) -> None:
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
