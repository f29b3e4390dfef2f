"""`glasslet waits`: lists the live waits."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from glasslet.answers.agent import WaitRow, WaitsAnswer
from glasslet.cli.agent_client import find_agent
from glasslet.cli.describe_command import waits_table
from glasslet.cli.options import namespace_option, optional_pod_argument
from glasslet.cli.output import output_option, show
from glasslet.cli.target import in_namespace, living_pod


@click.command("waits")
@optional_pod_argument
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces, as without -n.")
@output_option
@click.pass_obj
def command(root_dir: Path | None, pod: str, namespace: str, all_namespaces: bool, form: str) -> None:
    """List everything that pods and agent wait for now, the longest first; with POD, of that pod only.

    POD is a name, namespace/name, or the beginning of one.
    """
    client = find_agent(root_dir)
    namespace = "" if all_namespaces else namespace
    target = str(living_pod(client, in_namespace(pod, namespace))) if pod else ""
    waits = client.get("/waits", WaitsAnswer).waits
    answer = WaitsAnswer(waits=tuple(wait for wait in waits if target in ("", wait.pod) and _inside(wait, namespace)))
    show(answer, form, lambda: waits_table(answer.waits, datetime.now(UTC)) if answer.waits else "no waits")


def _inside(wait: WaitRow, namespace: str) -> bool:
    return not namespace or wait.pod.startswith(f"{namespace}/")
