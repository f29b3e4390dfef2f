"""Ids that hints name and nobody knows: mostly what one of our own calls is just making, seldom somebody else's work.

A call that makes something tells its id only when it returns, and the runtime's hints about it come earlier. So a
stranger waits: until its id becomes known (then it is judged as any hint), or until a moment has passed and no own
change is under way (then a full list has to tell what it is). On a node that is never quiet, the slow list does that.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from glasslet.api.object import PodUID
from glasslet.runtime.observed.news import further, is_over
from glasslet.runtime.protocols import RuntimeHint


class Strangers:
    """Keeps hints of unknown ids. `ask`: called when one of them stayed unknown; `patience` in seconds."""

    def __init__(self, *, ask: Callable[[], None], patience: float) -> None:
        self._ask = ask
        self._patience = patience
        self._hints: dict[str, RuntimeHint] = {}
        self._changing: Counter[PodUID] = Counter()

    @contextmanager
    def changing(self, uid: PodUID) -> Iterator[None]:
        """While the body makes something of this pod in the runtime and reads it back."""
        self._changing[uid] += 1
        try:
            yield
        finally:
            self._changing[uid] -= 1
            if not self._changing[uid]:
                del self._changing[uid]

    def may_be_ours(self, uid: PodUID | None) -> bool:
        """Whether an unknown id (of this pod; None: of any) may be what an own call is just making."""
        return uid in self._changing if uid is not None else bool(self._changing)

    def meet(self, hint: RuntimeHint, subject: str) -> None:
        """Takes a hint about an id that nobody knows. The end of what nobody makes leaves nothing to be found."""
        known = self._hints.get(subject)
        if known is not None:
            self._hints[subject] = further(known, hint)
        elif not is_over(hint) or self.may_be_ours(hint.uid):
            self._hints[subject] = hint
            self._wait(subject)

    def became_known(self, subject: str) -> RuntimeHint | None:
        """The id is known from now on; the furthest that hints told of it before, None if there was none."""
        return self._hints.pop(subject, None)

    def _wait(self, subject: str) -> None:
        asyncio.get_running_loop().call_later(self._patience, self._ask_about, subject)

    def _ask_about(self, subject: str) -> None:
        if subject not in self._hints:
            return
        if self._changing:
            self._wait(subject)
        elif not is_over(self._hints.pop(subject)):
            self._ask()
