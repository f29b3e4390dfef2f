"""`glasslet why`: explains why a pod or the node is as it is, or lists all troubles of the node."""

from __future__ import annotations

import click
from msgspec.structs import replace

from glasslet.answers.states import VerdictState, VerdictSubject
from glasslet.answers.why import Trouble, TroublesAnswer, VerdictAnswer
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.ended_pods import answer_from_agent_or_disk, node_from_agent_or_disk
from glasslet.cli.failure import AgentNotRunning, Failure
from glasslet.cli.options import namespace_option, why_argument
from glasslet.cli.output import (
    TEXT,
    output_option,
    printable,
    show,
    styled,
    write,
)
from glasslet.cli.target import in_namespace
from glasslet.cli.watching import watch_option, watched

NODE = "node"
WRONG = 5
"""The exit code of an answer about the whole node that names something wrong."""
_STYLES = {VerdictState.FINE: "green", VerdictState.ENDED: "", VerdictState.FAILING: "red"}


@click.command("why")
@why_argument
@namespace_option
@watch_option
@click.option("--explain", metavar="RULE", default="", help="Print the page of a rule: what it means, and what helps.")
@output_option
@click.pass_obj
def command(place: AgentPlace, pod: str, namespace: str, watch: bool, explain: str, form: str) -> None:
    """Explain why a pod is as it is, or why the node is Ready or not: one sentence, evidence, next step.

    Without a name: everything on this node that is not as it should be, the worst first.

    POD is a name, namespace/name, or the beginning of one. Removed pods are found in the record.
    `node` means the node, and lists broken manifests; a pod of that name is default/node.
    Exit code 5, without a name or with `node`: something is wrong. Pods that are starting, stopping or held, and
    findings about the agent, are listed and do not count.
    """
    if explain:
        if pod or watch:
            raise click.UsageError("--explain RULE takes no POD and no --watch")
        write(explanation(explain))
        return
    pod = in_namespace(pod, namespace)
    if watch and form == TEXT:
        watched(lambda: answer_text(requested(place, pod, namespace)))
        return
    answer = requested(place, pod, namespace)
    show(answer, form, lambda: answer_text(answer))
    if pod in ("", NODE) and is_wrong(answer):
        click.get_current_context().exit(WRONG)


def requested(place: AgentPlace, pod: str, namespace: str) -> VerdictAnswer | TroublesAnswer:
    """The answer about a pod, the node, or ("") everything on it."""
    if pod == NODE:
        return node_from_agent_or_disk(place)
    if pod:
        return answer_from_agent_or_disk(place, "why", pod, VerdictAnswer)
    try:
        return in_one_namespace(find_agent(place).get("/why", TroublesAnswer), namespace)
    except AgentNotRunning:
        node = node_from_agent_or_disk(place)
        down = Trouble(subject=VerdictSubject.NODE, verdict=node, wrong=True)
        return TroublesAnswer(sentence=f"{node.name}: no agent answers.", node=node, wrong=True, troubles=(down,))


def explanation(rule: str) -> str:
    """The page of a rule. Raises Failure for an unknown one."""
    from glasslet.answers.rules import PAGES
    from glasslet.answers.words import nearest

    for known, page in PAGES.items():
        if known == rule.replace("-", "_"):
            return page.as_text(known)
    near = nearest(rule, PAGES)
    raise Failure(
        f"no rule {rule}; " + (f"did you mean {' or '.join(near)}?" if near else f"rules: {', '.join(PAGES)}")
    )


def in_one_namespace(answer: TroublesAnswer, namespace: str) -> TroublesAnswer:
    """Without the pods of other namespaces."""
    if not namespace:
        return answer
    kept = tuple(one for one in answer.troubles if one.verdict.namespace in ("", namespace))
    return replace(answer, troubles=kept, wrong=any(one.wrong for one in kept))


def is_wrong(answer: VerdictAnswer | TroublesAnswer) -> bool:
    """Whether an answer about the node names something wrong."""
    if isinstance(answer, TroublesAnswer):
        return answer.wrong
    broken = any(evidence.label == "broken manifest" for evidence in answer.evidence)
    return broken or answer.state in (VerdictState.FAILING, VerdictState.WAITING)


def answer_text(answer: VerdictAnswer | TroublesAnswer) -> str:
    """Either answer as text."""
    return troubles_text(answer) if isinstance(answer, TroublesAnswer) else verdict_text(answer)


def troubles_text(answer: TroublesAnswer) -> str:
    """One line for the node as a whole, then each trouble with its next step."""
    lines = [styled(answer.sentence, "red" if answer.wrong else "green")]
    for trouble in answer.troubles:
        verdict = trouble.verdict
        style = _STYLES.get(verdict.state, "yellow") if trouble.wrong else "dim"
        lines.append(f"  {styled(verdict.sentence, style)}")
        if verdict.next_step:
            lines.append(f"    {styled('next step', 'bold')}  {printable(verdict.next_step)}")
    if answer.left_out:
        lines.append(f"  and {answer.left_out} more")
    return "\n".join(lines)


def verdict_text(answer: VerdictAnswer) -> str:
    """The verdict as text."""
    lines = [styled(answer.sentence, _STYLES.get(answer.state, "yellow"))]
    facts = [(evidence.label, evidence.text) for evidence in answer.evidence]
    if answer.rest:
        facts.append(("the rest", f"{answer.rest}: nothing else is known to be missing"))
    if answer.next_step:
        facts.append(("next step", answer.next_step))
    margin = max((len(label) for label, _ in facts), default=0) + 2
    for label, text in facts:
        first, *others = text.splitlines() or [""]
        lines.append(f"  {styled(label, 'bold')}{' ' * (margin - len(label))}{printable(first)}")
        lines += [f"  {' ' * margin}{printable(other)}" for other in others[:5]]
    return "\n".join(lines)
