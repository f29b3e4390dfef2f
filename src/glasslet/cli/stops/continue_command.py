"""`glasslet continue`: lets held pods go on."""

from __future__ import annotations

import click

from glasslet.answers.stops import ReleasedAnswer
from glasslet.cli.agent_client import AgentClient, AgentPlace, PodName, find_agent, pod_path
from glasslet.cli.options import namespace_option, optional_pod_argument
from glasslet.cli.output import output_option, show
from glasslet.cli.stops.holds_text import released_text
from glasslet.cli.target import in_namespace, living_pod


@click.command("continue")
@optional_pod_argument
@namespace_option
@click.option("--all", "everything", is_flag=True, help="All pods that are held.")
@output_option
@click.pass_obj
def command(place: AgentPlace, pod: str, namespace: str, everything: bool, form: str) -> None:
    """Let a held pod go on, up to the next break. Breaks stay: `glasslet unbreak` removes them.

    POD is a name, namespace/name, or the beginning of one.
    """
    if bool(pod) == everything:
        raise click.UsageError("name one POD, or use --all")
    client = find_agent(place)
    if everything:
        answer = client.post("/continue", None, ReleasedAnswer)
        show(answer, form, lambda: released_text(answer, nothing="no pod is held"))
        return
    target = living_pod(client, in_namespace(pod, namespace))
    answer = let_go(client, target)
    show(answer, form, lambda: released_text(answer, nothing=f"{target} is not held"))


def let_go(client: AgentClient, pod: PodName) -> ReleasedAnswer:
    """Lets one pod go."""
    return client.post(pod_path(pod.namespace, pod.name, "/continue"), None, ReleasedAnswer)
