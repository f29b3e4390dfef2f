"""`glasslet waits`: lists the live waits."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from glasslet.answers.agent import WaitRow, WaitsAnswer
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.describe_command import waits_table
from glasslet.cli.options import namespace_option, optional_pod_argument
from glasslet.cli.output import TEXT, output_option, show
from glasslet.cli.target import in_namespace, living_pod
from glasslet.cli.watching import watch_option, watched


@click.command("waits")
@optional_pod_argument
@watch_option
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces, as without -n.")
@output_option
@click.pass_obj
def command(place: AgentPlace, pod: str, watch: bool, namespace: str, all_namespaces: bool, form: str) -> None:
    """List everything that pods and agent wait for now, the longest first; with POD, of that pod only.

    POD is a name, namespace/name, or the beginning of one.
    """
    client = find_agent(place)
    namespace = "" if all_namespaces else namespace
    target = str(living_pod(client, in_namespace(pod, namespace))) if pod else ""

    def answer() -> WaitsAnswer:
        waits = client.get("/waits", WaitsAnswer).waits
        return WaitsAnswer(waits=tuple(w for w in waits if target in ("", w.pod) and _inside(w, namespace)))

    if watch and form == TEXT:
        watched(lambda: _text(answer()))
        return
    found = answer()
    show(found, form, lambda: _text(found))


def _text(answer: WaitsAnswer) -> str:
    return waits_table(answer.waits, datetime.now(UTC)) if answer.waits else "no waits"


def _inside(wait: WaitRow, namespace: str) -> bool:
    return not namespace or wait.pod.startswith(f"{namespace}/")
