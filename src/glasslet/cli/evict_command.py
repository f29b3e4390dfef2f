"""`glasslet evict --dry-run`: shows what eviction would do now."""

from __future__ import annotations

from urllib.parse import urlencode

import click

from glasslet.answers.eviction import CandidateAnswer, EvictionAnswer, SignalAnswer
from glasslet.answers.words import duration, size_words
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.failure import Failure
from glasslet.cli.output import fitted, output_option, printable, show, styled, table

_HEADERS = ("", "POD", "USES", "REQUESTS", "PRIORITY", "WHY HERE")


@click.command("evict")
@click.option("--dry-run", is_flag=True, help="Only show: required, because the agent alone evicts.")
@click.option("--signal", metavar="SIGNAL", default="", help="The order for this signal. Default: the most urgent one.")
@output_option
@click.pass_obj
def command(place: AgentPlace, dry_run: bool, signal: str, form: str) -> None:
    """Show what the node has left of each resource, and which pods would be evicted in which order.

    Nothing is evicted: a node under pressure does that by itself, by the same decision.

    SIGNAL is a name of KubeletConfiguration's evictionHard, such as memory.available or nodefs.inodesFree.
    """
    if not dry_run:
        raise click.UsageError("only with --dry-run: the agent alone evicts, when the node is short of something")
    path = f"/node/eviction?{urlencode({'signal': signal})}" if signal else "/node/eviction"
    answer = find_agent(place).get(path, EvictionAnswer)
    if answer.problem:
        raise Failure(answer.problem)
    show(answer, form, lambda: eviction_text(answer))


def eviction_text(answer: EvictionAnswer) -> str:
    """The answer as text."""
    lines = [styled(answer.sentence, "yellow" if answer.conditions else "green")]
    for signal in answer.signals:
        lines += _signal_lines(signal)
    lines += [f"  {styled(signal, 'bold')}  no figures: its threshold is not checked" for signal in answer.blind]
    for over in answer.over_limits:
        lines.append(f"{styled(over.pod, 'red')} would be evicted now: {printable(over.message)}")
    if answer.order:
        lines.append(f"\norder for {answer.signal}:")
        rows = [_row(answer, number, one) for number, one in enumerate(answer.order, start=1)]
        lines.append(table(_HEADERS, fitted(rows, _HEADERS, columns=(1, 5))))
    return "\n".join(lines)


def _signal_lines(one: SignalAnswer) -> list[str]:
    age = f", {duration(one.age_seconds)} old" if one.age_seconds >= 1 else ""
    lines = [f"  {styled(one.signal, 'bold')}  {printable(one.how)}"]
    lines += [f"    evicts: {threshold.text}" for threshold in one.thresholds]
    lines.append(f"    {one.trend}" + (f"; from {printable(one.source)}{age}" if one.source else ""))
    return lines


def _row(answer: EvictionAnswer, number: int, one: CandidateAnswer) -> list[str]:
    used = "unknown" if one.usage is None else _amount(answer.unit, one.usage)
    why = one.stays or one.behind or "first of those that may go"
    place = "-" if one.stays else str(number)
    return [place, one.pod, used, _amount(answer.unit, one.request), str(one.priority), why]


def _amount(unit: str, amount: int) -> str:
    return size_words(amount) if unit == "bytes" else str(amount)
