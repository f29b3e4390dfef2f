"""`glasslet breaks`: lists the breaks."""

from __future__ import annotations

import click

from glasslet.answers.stops import BreaksAnswer
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.output import output_option, show
from glasslet.cli.stops.holds_text import breaks_table


@click.command("breaks")
@output_option
@click.pass_obj
def command(place: AgentPlace, form: str) -> None:
    """List the breaks, how often each held a pod, and which pods it holds now."""
    answer = find_agent(place).get("/breaks", BreaksAnswer)
    show(answer, form, lambda: breaks_table(answer.breaks))
