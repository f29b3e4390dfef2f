"""Calls as a tree of text: one line each, children indented below their caller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from glasslet.answers.calls import Call, CallsAnswer
from glasslet.answers.words import milliseconds
from glasslet.cli.output import clock_time, on_terminal, styled, width

SHORT_MS = 1.0
"""Shorter calls are summed up unless all are asked for."""
_DEEPEST_INDENT = 30


def drawn(answer: CallsAnswer, *, everything: bool) -> str:
    """The whole tree."""
    lines = [_headline(answer)]
    children: dict[int, list[int]] = {}
    for number, call in enumerate(answer.calls):
        children.setdefault(call.parent, []).append(number)
    lines += _lines(answer.calls, children, everything=everything)
    if answer.left_out:
        lines.append(f"  {answer.left_out} more calls were not kept")
    if not answer.calls:
        lines.append("  nothing ran for it in that time")
    return "\n".join(lines)


def _headline(answer: CallsAnswer) -> str:
    name = f"{answer.namespace}/{answer.name}" if answer.name else "start of the agent"
    took = ""
    if answer.start is not None and answer.end is not None:
        took = f" ({milliseconds((answer.end - answer.start).total_seconds() * 1000)})"
    until = f"to {clock_time(answer.end)}" if answer.end is not None else "so far"
    roots = [call for call in answer.calls if call.parent == -1]
    cpu = f", CPU {milliseconds(sum(call.cpu_ms for call in roots))}" if answer.name and roots else ""
    count = sum(call.repeated for call in answer.calls)
    return styled(name, "bold") + f"  {clock_time(answer.start)} {until}{took}, {count} calls{cpu}"


def _lines(calls: Sequence[Call], children: dict[int, list[int]], *, everything: bool) -> Iterator[str]:
    """Depth first, with a stack of its own: a tree may be deeper than Python's."""
    pending: list[tuple[int, int] | str] = []

    def push(parent: int, depth: int) -> None:
        shown: list[int] = []
        hidden: list[int] = []
        for number in children.get(parent, ()):
            call = calls[number]
            (shown if everything or _is_long(call) else hidden).append(number)
        if hidden:
            pending.append(_hidden([calls[number] for number in hidden], depth))
        pending.extend((number, depth) for number in reversed(shown))

    push(-1, 1)
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
            continue
        number, depth = item
        yield _line(calls[number], depth)
        push(number, depth + 1)


def _is_long(call: Call) -> bool:
    return call.end_ms is None or call.end_ms - call.start_ms >= SHORT_MS or bool(call.outcome)


def _hidden(calls: Sequence[Call], depth: int) -> str:
    took = sum((call.end_ms or call.start_ms) - call.start_ms for call in calls)
    count = sum(call.repeated for call in calls)
    plural = "call" if count == 1 else "calls"
    return styled(f"{_indent(depth)}… {count} shorter {plural}, {milliseconds(took)}", "dim")


def _line(call: Call, depth: int) -> str:
    # A part of the start that is no function has a name with spaces.
    arguments = "" if " " in call.function else f"({call.arguments})"
    result = f" -> {call.result}" if call.result else ""
    times = f" ×{call.repeated}" if call.repeated > 1 else ""
    text = f"{arguments}{result}{times}"
    place = f"{call.file.removeprefix('glasslet/')}:{call.line}"
    notes = "  ".join(filter(None, (place, _times(call))))
    room = width() - len(_indent(depth)) - len(call.function) - len(notes) - 2
    if on_terminal() and len(text) > max(8, room):
        text = text[: max(8, room) - 1] + "…"
    outcome = "  " + styled(call.outcome, "red") if call.outcome else ""
    return f"{_indent(depth)}{styled(call.function, 'cyan')}{styled(text, '')}  {styled(notes, 'dim')}{outcome}"


def _times(call: Call) -> str:
    took = milliseconds(call.end_ms - call.start_ms) if call.end_ms is not None else "not over"
    parts = [took]
    if call.cpu_ms >= 0.05:
        parts.append(f"CPU {milliseconds(call.cpu_ms)}")
    if call.waited_ms >= 0.05:
        on = f" ({call.waited_on})" if call.waited_on else ""
        parts.append(f"awaited {milliseconds(call.waited_ms)}{on}")
    return ", ".join(parts)


def _indent(depth: int) -> str:
    return "  " * min(depth, _DEEPEST_INDENT)
