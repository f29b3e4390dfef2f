"""A report as Markdown: sections as the commands print them, then all answers as one JSON object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from glasslet.answers.wire import to_plain
from glasslet.cli.describe_command import described, waits_table
from glasslet.cli.output import plain_text, printable, table
from glasslet.cli.report.gathering import Report
from glasslet.cli.trace_command import drawn
from glasslet.cli.why_command import verdict_text

_COLUMNS = 160


def report_text(report: Report) -> str:
    """The whole file."""
    with plain_text():
        parts = [_heading(report), *(f"## {title}\n\n{_fenced(text)}" for title, text in _sections(report) if text)]
    data = json.dumps(to_plain(report), indent=1, ensure_ascii=False, default=str)
    parts.append(f"## Data\n\n{_fenced(data, 'json')}")
    return "\n\n".join(parts) + "\n"


def _heading(report: Report) -> str:
    agent = report.agent
    facts = [("made", f"{report.made_at:%Y-%m-%d %H:%M:%S} UTC by glasslet {report.tool} ({report.schema})")]
    if agent is not None:
        started = f", started {agent.started_at:%Y-%m-%d %H:%M:%S} UTC" if agent.started_at is not None else ""
        facts += [("node", agent.node), ("agent", f"{agent.version}{started}"), ("runtime", agent.runtime)]
    facts += [(f"no {name}", why) for name, why in report.missing.items()]
    return "\n".join([f"# {report.pod}", "", *(f"- {name}: {printable(text)}" for name, text in facts)])


def _sections(report: Report) -> Iterator[tuple[str, str]]:
    if report.why is not None:
        yield "Why", verdict_text(report.why)
    if report.node_why is not None:
        yield "Node", verdict_text(report.node_why)
    if report.description is not None:
        yield "Pod", described(report.description, report.made_at)
    if report.trace is not None:
        yield "Start", drawn(report.trace, columns=_COLUMNS, later=None)
    if report.waits:
        yield "Waits of the pod and of the agent", waits_table(report.waits, report.made_at)
    if report.events:
        rows = [[event.at, event.type, event.reason, str(event.count), event.message] for event in report.events]
        yield "Events", table(("AT", "TYPE", "REASON", "COUNT", "MESSAGE"), rows)
    if report.agent is not None:
        yield "Findings of the agent", "\n".join(printable(text) for text in report.agent.findings)
    if report.configuration:
        lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in report.configuration.items()]
        yield "Configuration of the agent", "\n".join(printable(line) for line in lines)


def _fenced(text: str, language: str = "text") -> str:
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
