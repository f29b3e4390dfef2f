"""`glasslet waits`: lists the live waits."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from glasslet.answers.agent import WaitsAnswer
from glasslet.cli.agent_client import find_agent
from glasslet.cli.describe_command import waits_table
from glasslet.cli.output import output_option, show
from glasslet.cli.target import living_pod


@click.command("waits")
@click.argument("pod", required=False, default="")
@output_option
@click.pass_obj
def command(root_dir: Path | None, pod: str, form: str) -> None:
    """List everything that pods and agent wait for now, the longest first; with POD, of that pod only.

    POD is a name, namespace/name, or the beginning of one.
    """
    client = find_agent(root_dir)
    target = str(living_pod(client, pod)) if pod else ""
    waits = client.get("/waits", WaitsAnswer).waits
    answer = WaitsAnswer(waits=tuple(wait for wait in waits if target in ("", wait.pod)))
    show(answer, form, lambda: waits_table(answer.waits, datetime.now(UTC)) if answer.waits else "no waits")
