"""Answers from the record on disk, for an agent that does not run."""

from __future__ import annotations

import platform
from datetime import datetime
from pathlib import Path

from glasslet.answers.trace import TraceAnswer
from glasslet.answers.why import VerdictAnswer
from glasslet.answers.wire import ErrorAnswer
from glasslet.answers.words import nearest
from glasslet.api.pod_ref import PodRef
from glasslet.glass.trace.waterfall import waterfall
from glasslet.glass.verdicts.ending import removed
from glasslet.glass.verdicts.start_rules import start_verdict
from glasslet.host.files.start_note import is_alive, read_note
from glasslet.record.archive import Archive
from glasslet.record.disk import last_alive
from glasslet.record.events import end_of


def answer_offline(
    root_dir: Path, question: str, typed: str, now: datetime
) -> TraceAnswer | VerdictAnswer | ErrorAnswer:
    """The answer to `trace` or `why` about a pod, as typed (name, namespace/name, or the beginning of one); "" is the
    agent itself. `node`: why no agent answers."""
    if question == "node":
        return node_offline(root_dir, now)
    archive = Archive(root_dir / "glasslet" / "records")
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
    if question == "why":
        return removed(record, now)
    # Nothing is known of the time after the record's end.
    return waterfall(record, now=max((end_of(event) for event in record.events), default=now.timestamp()))


def node_offline(root_dir: Path, now: datetime) -> VerdictAnswer:
    """Why no agent answers."""
    note = read_note(str(root_dir))
    return start_verdict(
        note,
        name=platform.node().lower(),
        alive=note is not None and is_alive(note),
        last_sign=last_alive(root_dir / "glasslet" / "records"),
        now=now,
    )


def _unknown(typed: str, refs: list[PodRef]) -> ErrorAnswer:
    names = sorted({str(ref) for ref in refs})
    return ErrorAnswer(error=f"no record of {typed}", field="pod", value=typed, nearest=nearest(typed, names))
