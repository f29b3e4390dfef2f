"""`glasslet why`: explains why a pod or the node is as it is."""

from __future__ import annotations

from pathlib import Path

import click

from glasslet.answers.states import VerdictState
from glasslet.answers.why import VerdictAnswer
from glasslet.cli.agent_client import find_agent
from glasslet.cli.ended_pods import answer_from_agent_or_disk
from glasslet.cli.options import namespace_option, why_argument
from glasslet.cli.output import output_option, printable, show, styled
from glasslet.cli.target import in_namespace

NODE = "node"
_STYLES = {VerdictState.FINE: "green", VerdictState.ENDED: "", VerdictState.FAILING: "red"}


@click.command("why")
@why_argument
@namespace_option
@output_option
@click.pass_obj
def command(root_dir: Path | None, pod: str, namespace: str, form: str) -> None:
    """Explain why a pod is as it is, or why the node is Ready or not: one sentence, evidence, next step.

    POD is a name, namespace/name, or the beginning of one. Removed pods are found in the record.
    `node` means the node, and lists broken manifests; a pod of that name is default/node.
    """
    pod = in_namespace(pod, namespace)
    if pod == NODE:
        answer = find_agent(root_dir).get("/node/why", VerdictAnswer)
    else:
        answer = answer_from_agent_or_disk(root_dir, "why", pod, VerdictAnswer)
    show(answer, form, lambda: verdict_text(answer))


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
