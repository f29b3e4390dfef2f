"""Hints about objects that the agent's own calls are changing. They wait, as the caller reads the change back.

For a known id that an own call is changing, the latest hint is kept until the change is over. An unknown id mostly
belongs to an object that an own call is making: the call returns the id only at its end, hints about the object come
earlier. Such a stranger waits until its id becomes known, or until a moment has passed and no own change is under way:
then a full list finds out what it is. On a node that is never quiet, the slow list does that.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from glasslet.api.object import PodUID
from glasslet.runtime.observed.news import further, is_over
from glasslet.runtime.protocols import RuntimeHint


class OwnChanges:
    """`judge` gets what was kept once it can be judged; `ask` is called when a stranger stayed one for `patience`
    seconds."""

    def __init__(self, *, judge: Callable[[RuntimeHint], None], ask: Callable[[], None], patience: float) -> None:
        self._judge = judge
        self._ask = ask
        self._patience = patience
        self._pods: Counter[PodUID] = Counter()
        self._ids: Counter[str] = Counter()
        self._kept: dict[str, RuntimeHint] = {}
        self._strangers: dict[str, tuple[RuntimeHint, float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def changing(self, uid: PodUID, ids: tuple[str, ...]) -> Iterator[None]:
        """While the body makes something of this pod, or changes these ids, and reads it back."""
        self._pods[uid] += 1
        self._ids.update(ids)
        try:
            yield
        finally:
            self._pods[uid] -= 1
            if not self._pods[uid]:
                del self._pods[uid]
            for one in ids:
                self._release(one)

    def includes(self, subject: str) -> bool:
        """Whether an own call is changing this id."""
        return subject in self._ids

    def may_make(self, uid: PodUID | None) -> bool:
        """Whether an unknown id (of this pod; None: of any) may be what an own call is just making."""
        return uid in self._pods if uid is not None else bool(self._pods)

    def keep(self, hint: RuntimeHint, subject: str) -> None:
        """Keeps a hint about an id that an own call is changing."""
        self._kept[subject] = further(self._kept.get(subject, hint), hint)

    def meet(self, hint: RuntimeHint, subject: str) -> None:
        """Takes a hint about an unknown id. After an end that no own call makes there is nothing to read."""
        if (known := self._strangers.get(subject)) is not None:
            self._strangers[subject] = further(known[0], hint), known[1]
        elif not is_over(hint) or self.may_make(hint.uid):
            self._strangers[subject] = hint, asyncio.get_running_loop().time()
            if self._timer is None:
                self._wait()

    def became_known(self, subject: str) -> None:
        """The id is known from now on."""
        if (met := self._strangers.pop(subject, None)) is not None:
            self._judge(met[0])

    def _release(self, subject: str) -> None:
        self._ids[subject] -= 1
        if not self._ids[subject]:
            del self._ids[subject]
            if (hint := self._kept.pop(subject, None)) is not None:
                self._judge(hint)

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._patience, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._pods:
            self._give_up(before=asyncio.get_running_loop().time() - self._patience / 2)
        if self._strangers:
            self._wait()

    def _give_up(self, *, before: float) -> None:
        long_met = [subject for subject, (_, met) in self._strangers.items() if met <= before]
        hints = [self._strangers.pop(subject)[0] for subject in long_met]
        if not all(is_over(hint) for hint in hints):
            self._ask()
