"""`glasslet step`: lets a held pod go on to the next place of its way."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from glasslet.answers.stops import StepAnswer
from glasslet.cli.agent_client import AgentClient, AgentPlace, PodName, find_agent, pod_path
from glasslet.cli.options import namespace_option, pod_argument
from glasslet.cli.output import output_option, show
from glasslet.cli.stops.holds_text import step_text
from glasslet.cli.target import in_namespace, living_pod


@click.command("step")
@pod_argument
@namespace_option
@output_option
@click.pass_obj
def command(place: AgentPlace, pod: str, namespace: str, form: str) -> None:
    """Let a held pod go on to the next place of its way, and print what happened until then.

    POD is a name, namespace/name, or the beginning of one.
    """
    client = find_agent(place)
    answer = stepped(client, living_pod(client, in_namespace(pod, namespace)))
    show(answer, form, lambda: step_text(answer, datetime.now(UTC)))


def stepped(client: AgentClient, pod: PodName) -> StepAnswer:
    """One step."""
    return client.post(pod_path(pod.namespace, pod.name, "/step"), None, StepAnswer)
