"""`glasslet unbreak`: removes breaks."""

from __future__ import annotations

import click

from glasslet.answers.stops import ReleasedAnswer
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.output import output_option, show
from glasslet.cli.stops.holds_text import released_text


@click.command("unbreak")
@click.argument("number", metavar="[BREAK]", type=click.IntRange(min=1), required=False)
@click.option("--all", "everything", is_flag=True, help="All breaks.")
@output_option
@click.pass_obj
def command(place: AgentPlace, number: int | None, everything: bool, form: str) -> None:
    """Remove a break, by its number in `glasslet breaks`. The pods that it holds go on."""
    if (number is None) is not everything:
        raise click.UsageError("name one BREAK, or use --all")
    path = "/breaks" if number is None else f"/breaks/{number}"
    answer = find_agent(place).delete(path, ReleasedAnswer)
    show(answer, form, lambda: released_text(answer, nothing="there were no breaks"))
