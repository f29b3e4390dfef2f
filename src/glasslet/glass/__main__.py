"""Reads the record of an agent that does not run: `python -m glasslet.glass ROOT_DIR trace|why [POD]`.

Writes the answer as JSON; exit code 1 and an `ErrorAnswer` where there is none. POD "" means the agent itself.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from glasslet.answers.names import nearest
from glasslet.answers.wire import ErrorAnswer, encode
from glasslet.api.pod_ref import PodRef
from glasslet.glass.verdicts.ending import gone
from glasslet.glass.waterfall import waterfall
from glasslet.record.archive import Archive


def main(arguments: list[str]) -> int:
    """Answers one question; the exit code."""
    root_dir, question, typed = arguments
    archive = Archive(Path(root_dir) / "glasslet" / "records")
    answer = _answer(archive, question, typed, datetime.now(UTC))
    sys.stdout.buffer.write(encode(answer))
    return 1 if isinstance(answer, ErrorAnswer) else 0


def _answer(archive: Archive, question: str, typed: str, now: datetime) -> Any:
    refs = archive.pods()
    uid = ""
    if typed:
        fitting = [ref for ref in refs if typed in (ref.name, str(ref))]
        fitting = fitting or [ref for ref in refs if f"/{typed}" in f"/{ref}"]
        if not fitting or len({str(ref) for ref in fitting}) > 1:
            return _unknown(typed, fitting or refs)
        uid = fitting[-1].uid
    archived = archive.read(uid)
    if archived is None:
        return _unknown(typed or "agent", refs)
    record = archived.record()
    return gone(record, now) if question == "why" else waterfall(record, now=_last(record.events, now))


def _last(events: tuple[Any, ...], now: datetime) -> float:
    """The record's own end: nothing is known of the time after it."""
    return max((getattr(event, "end", event.start) for event in events), default=now.timestamp())


def _unknown(typed: str, refs: list[PodRef]) -> ErrorAnswer:
    names = sorted({str(ref) for ref in refs})
    return ErrorAnswer(
        error=f"no record of {typed}",
        field="pod",
        value=typed,
        nearest=nearest(typed, names),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
