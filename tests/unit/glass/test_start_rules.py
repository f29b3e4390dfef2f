"""Why no agent answers, from the note of its last start: one state at a time."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from glasslet.answers.why import VerdictAnswer
from glasslet.glass.offline import node_offline
from glasslet.glass.verdicts.start_rules import start_verdict
from glasslet.host.files.start_note import NotedProblem, StartNote, StartNotes, is_alive, read_note

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
BEGAN = NOW.timestamp() - 60


def why(*, alive: bool = False, last_sign: float | None = None, **changed: Any) -> VerdictAnswer:
    note = StartNote(**{"pid": 7, "ticks": 1, "state": "up", "started": BEGAN, "since": BEGAN, "node": "a", **changed})
    return start_verdict(note, name="machine", alive=alive, last_sign=last_sign, now=NOW)


def test_a_refused_start_has_its_problem_and_its_time_in_the_sentence() -> None:
    verdict = why(state="refused", problems=(NotedProblem("port 10250 is in use by nginx (pid 9)"),))
    assert verdict.rule == "start_refused"
    assert verdict.sentence == (
        "a: no agent runs: its start was refused at 2026-03-01 11:59:00 UTC (1 min ago): "
        "port 10250 is in use by nginx (pid 9)."
    )
    assert verdict.next_step == "end the process that holds the port, or choose another port"


def test_every_problem_of_a_refused_start_is_evidence_with_its_origin() -> None:
    problems = (NotedProblem("maxPods: want more than 0", "file /k.yaml:3"), NotedProblem("port: out of range"))
    verdict = why(state="refused", problems=problems)
    assert "(and 1 more)" in verdict.sentence
    assert [one.text for one in verdict.evidence] == [
        "maxPods: want more than 0 [file /k.yaml:3]", "port: out of range"
    ]  # fmt: skip


def test_a_start_that_waits_names_what_for_and_since_when() -> None:
    verdict = why(state="starting", reason="waiting for the container runtime at /run/x.sock", alive=True)
    assert (verdict.rule, verdict.state) == ("agent_starting", "starting")
    assert "waiting for the container runtime at /run/x.sock, since 2026-03-01 11:59:00 UTC" in verdict.sentence


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"state": "ended"}, "it was ended by a signal (TERM or INT), since 2026-03-01 11:59:00 UTC"),
        ({"state": "up", "last_sign": BEGAN}, "its process 7 died without a word, since 2026-03-01 11:59:00 UTC"),
        ({"state": "starting"}, "its process 7 died during its start without a word"),
        ({"state": "up", "alive": True}, "the agent's process 7 runs and does not answer"),
    ],
)
def test_an_agent_that_does_not_run_is_told_apart_by_how_it_ended(changed: dict[str, Any], words: str) -> None:
    verdict = why(**changed)
    assert verdict.rule == "agent_stopped"
    assert words in verdict.sentence


def test_without_a_note_the_record_says_when_an_agent_was_last_alive(tmp_path: Path) -> None:
    records = tmp_path / "glasslet" / "records"
    records.mkdir(parents=True)
    (records / "alive").touch()
    os.utime(records / "alive", (BEGAN, BEGAN))
    assert "no agent runs, since 2026-03-01 11:59:00 UTC (1 min ago)" in node_offline(tmp_path, NOW).sentence


def test_the_note_of_a_process_is_read_back_and_counts_as_alive(tmp_path: Path) -> None:
    notes = StartNotes(str(tmp_path), node="a")
    notes.waiting("waiting for the disk")
    note = read_note(str(tmp_path))
    assert note is not None
    assert (note.state, note.reason, note.pid, is_alive(note)) == (
        "starting",
        "waiting for the disk",
        os.getpid(),
        True,
    )


def test_the_note_of_an_agent_that_runs_is_not_overwritten_by_another_start(tmp_path: Path) -> None:
    parent = StartNotes(str(tmp_path))
    parent._note = StartNote(
        pid=os.getppid(), ticks=_ticks(os.getppid()), state="starting", started=BEGAN, since=BEGAN, node="first"
    )
    parent.up()
    StartNotes(str(tmp_path)).refused([("another agent runs here", "")])
    note = read_note(str(tmp_path))
    assert note is not None
    assert (note.node, note.state) == ("first", "up")


def test_no_root_directory_is_made_for_a_note(tmp_path: Path) -> None:
    StartNotes(str(tmp_path / "none")).refused([("x", "")])
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"pid": 1', b"\xff"])
def test_a_damaged_note_is_no_note(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "glasslet").mkdir()
    (tmp_path / "glasslet" / "start.json").write_bytes(content)
    assert read_note(str(tmp_path)) is None


def _ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
