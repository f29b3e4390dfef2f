"""The waits that a pod's plans name: kept open over wake-ups, so that each shows since when it really lasts, and closed
when a plan that does not name them any more is acted on."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from glasslet.pods.planner import PlannedWait
from glasslet.record.recorder import Recorder


class WaitBoard:
    """Opens and closes the waits of one pod, as its plans name them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[PlannedWait, ExitStack] = {}

    def show(self, waits: Iterable[PlannedWait]) -> None:
        """From now on the pod waits for exactly these."""
        wanted = dict.fromkeys(waits)
        for gone in [wait for wait in self._open if wait not in wanted]:
            self._open.pop(gone).close()
        for wait in wanted:
            if wait not in self._open:
                stack = ExitStack()
                stack.enter_context(
                    self._recorder.wait(wait.kind, on=wait.on, until=wait.until, container=wait.container or None)
                )
                self._open[wait] = stack

    def clear(self) -> None:
        """The pod waits for nothing of that kind."""
        self.show(())
