"""`glasslet version`: prints the versions."""

from __future__ import annotations

import click

from glasslet.answers.agent import AgentAnswer
from glasslet.answers.wire import WireMessage
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.failure import Failure
from glasslet.cli.output import output_option, show
from glasslet.version import KUBELET_VERSION, VERSION


class Versions(WireMessage, frozen=True, kw_only=True):
    """Versions of the tool, of the kubelet that it starts, and of the running agent ("" without one)."""

    glasslet: str
    kubelet: str
    agent: str = ""
    runtime: str = ""


@click.command("version")
@output_option
@click.pass_obj
def command(place: AgentPlace, form: str) -> None:
    """Print the versions of this tool and of the running agent."""
    try:
        agent = find_agent(place).get("/agent", AgentAnswer)
        answer = Versions(glasslet=VERSION, kubelet=KUBELET_VERSION, agent=agent.version, runtime=agent.runtime)
    except Failure:
        answer = Versions(glasslet=VERSION, kubelet=KUBELET_VERSION)
    running = f"{answer.agent} on {answer.runtime}" if answer.agent else "not running"
    show(answer, form, lambda: f"glasslet {answer.glasslet}\nkubelet  {answer.kubelet}\nagent    {running}")
