"""`glasslet trace`: shows one pod's start, millisecond by millisecond."""

from __future__ import annotations

import click

from glasslet.answers.states import EventKind, Milestone, Outcome
from glasslet.answers.trace import Span, TraceAnswer, TraceRow
from glasslet.answers.words import duration, milliseconds
from glasslet.cli.agent_client import AgentPlace
from glasslet.cli.ended_pods import answer_from_agent_or_disk
from glasslet.cli.options import namespace_option, optional_recorded_pod_argument
from glasslet.cli.output import clock_time, cut, on_terminal, output_option, printable, show, styled, width
from glasslet.cli.target import in_namespace

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR_LIMIT = 60
_LATER_LINES = 12
_LEAST_NOTE = 20


@click.command("trace")
@optional_recorded_pod_argument
@namespace_option
@click.option("--agent", is_flag=True, help="The agent's own record instead of a pod's.")
@click.option("--all", "everything", is_flag=True, help="All events after the start, line by line.")
@click.option("--perfetto", metavar="FILE", default="", help="Write a file for ui.perfetto.dev instead.")
@output_option
@click.pass_obj
def command(
    place: AgentPlace, pod: str, namespace: str, agent: bool, everything: bool, perfetto: str, form: str
) -> None:
    """Show one pod's start from seen to Ready, and which party took each millisecond.

    POD is a name, namespace/name, or the beginning of one. Removed pods are found in the record.
    """
    if bool(pod) == agent:
        raise click.UsageError("name one POD, or use --agent")
    pod = in_namespace(pod, namespace)
    answer = answer_from_agent_or_disk(place, "trace", pod, TraceAnswer)
    if perfetto:
        from glasslet.cli.calls.export import send, trace_as_perfetto

        send(trace_as_perfetto(answer), perfetto)
        return
    show(answer, form, lambda: drawn(answer, columns=width(), later=None if everything else _LATER_LINES))


def drawn(answer: TraceAnswer, *, columns: int, later: int | None = _LATER_LINES) -> str:
    """The waterfall as text."""
    if not answer.rows and not answer.later:
        return f"{answer.namespace}/{answer.name}: nothing was recorded"
    names = [_name(row) for row in answer.rows]
    margin = max((len(name) for name in names), default=0) + 4
    bar = max(16, min(_BAR_LIMIT, columns - margin - 40))
    lines = [_headline(answer), *_creation(answer)]
    for name, row in zip(names, answer.rows, strict=True):
        strokes = painted(row.spans, total_ms=answer.total_ms, cells=bar)
        style = "red" if row.outcome == Outcome.FAILED else "yellow" if row.open else "cyan"
        note = cut(_note(row), max(_LEAST_NOTE, columns - margin - bar - 1)) if on_terminal() else _note(row)
        lines.append(f"  {printable(name.ljust(margin - 2))}{styled(strokes, style)} {printable(note)}".rstrip())
    lines.append(_balance(answer))
    for gap in answer.gaps:
        took = duration((gap.end - gap.start).total_seconds())
        lines.append(f"  no agent ran from {clock_time(gap.start)} to {clock_time(gap.end)} ({took})")
    if answer.dropped:
        lines.append(f"  {answer.dropped} events were dropped to keep the record small")
    lines += _later(answer, later)
    return "\n".join(lines)


def painted(spans: tuple[Span, ...], *, total_ms: float, cells: int) -> str:
    """Spans as blocks; the shortest is still visible."""
    if total_ms <= 0:
        return _BLOCKS[1]
    cover = [0.0] * cells
    touched = set()
    for span in spans:
        start = max(0.0, span.start_ms) / total_ms * cells
        end = min(total_ms, span.end_ms) / total_ms * cells
        first, last = min(int(start), cells - 1), min(int(end), cells - 1)
        touched.add(first)
        for cell in range(first, last + 1):
            cover[cell] += max(0.0, min(end, cell + 1) - max(start, cell))
    blocks = [_BLOCKS[max(1 if cell in touched else 0, min(8, round(part * 8)))] for cell, part in enumerate(cover)]
    return "".join(blocks).rstrip()


def _headline(answer: TraceAnswer) -> str:
    name = f"{answer.namespace}/{answer.name}" if answer.uid else answer.name
    shares = ", ".join(f"{share.who} {milliseconds(share.ms)}" for share in answer.shares)
    total = milliseconds(answer.total_ms)
    uid = f"  uid {answer.uid[:8]}…" if answer.uid else ""
    until = "so far" if answer.milestone == Milestone.NOW else f"{answer.milestone} {clock_time(answer.end)}"
    whole = f"({total}: {shares})" if shares else f"({total})"
    times = f"{uid}  seen {clock_time(answer.start)}  {until}  {whole}"
    return styled(name, "bold") + printable(times)


def _creation(answer: TraceAnswer) -> list[str]:
    """The API has whole seconds: the pod was created at some moment of that second."""
    if answer.created is None:
        return []
    longest = (answer.start - answer.created).total_seconds()
    when = f"  created at API {answer.created.astimezone():%H:%M:%S} (in whole seconds)"
    if longest < 0:
        return [f"{when}, by a clock that is ahead of this node's"]
    least = max(0.0, longest - 1)
    return [f"{when}, {milliseconds(least * 1000)} to {milliseconds(longest * 1000)} before it was seen here"]


def _name(row: TraceRow) -> str:
    return f"{row.container}  {row.name}" if row.container else row.name


def _note(row: TraceRow) -> str:
    parts = [milliseconds(row.busy_ms)]
    if row.open:
        parts.append("still open")
    if row.detail and row.detail != "attempt 0":
        parts.append(row.detail[:120])
    long_waits = sorted((w for w in row.waits if w.end_ms - w.start_ms >= 1), key=lambda w: w.start_ms - w.end_ms)
    named = [f"{w.on} {milliseconds(w.end_ms - w.start_ms)}" for w in long_waits if w.on not in row.detail]
    if named:
        parts.append(", ".join(named[:2]))
    if row.outcome:
        parts.append(row.outcome)
    if row.beside:
        parts.append(f"beside {', '.join(dict.fromkeys(name.split(' ')[0] for name in row.beside[:3]))}")
    return "  ".join(parts)


def _balance(answer: TraceAnswer) -> str:
    if not answer.rows:
        return ""
    unnamed = milliseconds(answer.unnamed_ms)
    share = answer.unnamed_ms / answer.total_ms if answer.total_ms else 0.0
    if share <= 0.05:
        return f"  all but {unnamed} of {milliseconds(answer.total_ms)} have a name"
    return f"  {unnamed} of {milliseconds(answer.total_ms)} have no name ({share:.0%})"


def _later(answer: TraceAnswer, limit: int | None) -> list[str]:
    rows = [row for row in answer.later if limit is None or row.kind != EventKind.WAIT or (row.took_ms or 0) >= 1000]
    if not rows:
        return []
    hidden = 0 if limit is None else max(0, len(rows) - limit)
    when = "after that" if answer.milestone != Milestone.NOW else "meanwhile"
    lines = [f"  {when}{f' (the last {limit} of {len(rows)}; all with --all)' if hidden else ''}:"]
    if answer.later_left_out and limit is None:
        lines.append(f"    {answer.later_left_out} earlier events are left out")
    for row in rows[hidden:]:
        took = f"  {milliseconds(row.took_ms)}" if row.took_ms else ""
        failed = f"  {row.outcome}" if row.outcome not in ("", Outcome.OK) else ""
        container = f"{row.container}  " if row.container else ""
        lines.append(printable(f"    {clock_time(row.at)}  {container}{row.text}{took}{failed}"))
    return lines
