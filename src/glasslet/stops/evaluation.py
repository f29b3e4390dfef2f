"""Conditions in CEL, evaluated by a process of their own: one that loops or grows is ended, and holds nothing up.

The process is started with the first condition and ended with the last. The library is loaded only there.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from glasslet.stops.conditions import FIELDS, BadCondition, ConditionFailed, ConditionTooSlow

EVALUATION_SECONDS = 0.5
"""For one condition of one pod."""
_START_SECONDS = 15.0
_ANSWER_BYTES = 64 * 1024


class CELConditions:
    """Implements `Conditions`. One evaluation at a time."""

    def __init__(self, *, seconds: float = EVALUATION_SECONDS) -> None:
        self._seconds = seconds
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def check(self, condition: str) -> None:
        """See `Conditions.check`."""
        async with self._turn:
            # It may have to be started, and the library to be loaded.
            answer = await self._ask({"check": condition, "names": FIELDS}, _START_SECONDS)
        if error := answer.get("error"):
            raise BadCondition(error, line=answer.get("line", 0), column=answer.get("column", 0))

    async def holds(self, condition: str, tree: Mapping[str, object]) -> bool:
        """See `Conditions.holds`."""
        async with self._turn:
            if self._process is None:
                await self._ask({"check": "true", "names": ()}, _START_SECONDS)
            answer = await self._ask({"when": condition, "tree": tree}, self._seconds)
        if error := answer.get("error"):
            raise ConditionFailed(error)
        return bool(answer.get("value"))

    def idle(self) -> None:
        """See `Conditions.idle`."""
        if not self._turn.locked():
            self._end()

    async def _ask(self, request: Mapping[str, object], seconds: float) -> dict[str, Any]:
        try:
            async with asyncio.timeout(seconds):
                process = self._process or await self._start()
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(msgspec.json.encode(request) + b"\n")
                await process.stdin.drain()
                line = await process.stdout.readline()
                answer: dict[str, Any] = msgspec.json.decode(line)
                return answer
        except TimeoutError:
            self._end()
            raise ConditionTooSlow(f"the condition took longer than {seconds:g} s") from None
        except (OSError, ValueError, msgspec.MsgspecError):
            self._end()
            raise ConditionFailed("the process that evaluates conditions ended") from None
        except BaseException:
            # The answer of a caller that was cancelled must not be taken for that of the next one.
            self._end()
            raise

    async def _start(self) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "glasslet.stops.cel_process"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            limit=_ANSWER_BYTES,
            start_new_session=True,
        )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
