"""`glasslet ps`: lists the pods, and what each is doing now."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from glasslet.answers.pods import PodRow, PodsAnswer
from glasslet.answers.words import duration
from glasslet.cli.agent_client import AgentClient, AgentPlace, find_agent
from glasslet.cli.options import namespace_option
from glasslet.cli.output import (
    TEXT,
    fitted,
    live_text,
    on_terminal,
    output_option,
    show,
    styled,
    table,
    without_figures,
    write,
)
from glasslet.cli.standalone.manifests import broken_manifest_lines
from glasslet.cli.watching import SECONDS, watch_option

_HEADERS = ("POD", "PHASE", "READY", "RESTARTS", "NOW", "SINCE")
_NODE = "NODE"
"""A last column, where pods of several nodes are listed."""
_PHASE_STYLES = {
    "Running": "green",
    "Succeeded": "green",
    "Failed": "red",
    "Terminating": "yellow",
    "Pending": "yellow",
}


@click.command("ps")
@watch_option
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="The pods of all namespaces, as without -n.")
@output_option
@click.pass_obj
def command(place: AgentPlace, watch: bool, namespace: str, all_namespaces: bool, form: str) -> None:
    """List the pods, and what each is doing now; below them the manifests that no pod came of."""
    client = find_agent(place)
    namespace = "" if all_namespaces else namespace
    if watch and form == TEXT:
        # Ctrl-C ends it.
        with contextlib.suppress(KeyboardInterrupt):
            follow(client, namespace)
        return
    answer = requested_pods(client, namespace)
    show(answer, form, lambda: pods_text(answer.pods, broken_manifests(client), datetime.now(UTC)))


def requested_pods(client: AgentClient, namespace: str = "") -> PodsAnswer:
    """The pods, of one namespace if one is given."""
    answer = client.get("/pods", PodsAnswer)
    return PodsAnswer(pods=tuple(row for row in answer.pods if namespace in ("", row.namespace)))


def pods_table(pods: Sequence[PodRow], now: datetime) -> str:
    """The table of `ps`."""
    if not pods:
        return "no pods"
    headers: tuple[str, ...] = _HEADERS
    rows, styles = [cells(row, now) for row in pods], [_styles(row) for row in pods]
    if any(row.node for row in pods):
        headers = (*headers, _NODE)
        rows = [[*row, pod.node] for row, pod in zip(rows, pods, strict=True)]
        styles = [[*row, ""] for row in styles]
    # A name is cut only where cutting the rest does not suffice.
    shown = fitted(rows, headers, columns=[headers.index("NOW")])
    return table(headers, fitted(shown, headers, columns=[headers.index("POD"), len(headers) - 1]), styles)


def broken_manifests(client: AgentClient) -> list[str]:
    """A line for each problem of a manifest that no pod came of."""
    return broken_manifest_lines(client.broken_manifests())


def pods_text(pods: Sequence[PodRow], broken: Sequence[str], now: datetime) -> str:
    """The table, and below it the manifests that no pod came of."""
    return "\n".join([pods_table(pods, now), *(styled(line, "red") for line in broken)])


def cells(row: PodRow, now: datetime) -> list[str]:
    """One line of the table."""
    since = duration((now - row.since).total_seconds()) if row.since is not None else "-"
    return [
        f"{row.namespace}/{row.name}",
        row.phase,
        f"{row.ready}/{row.containers}",
        str(row.restarts),
        row.now or "-",
        since,
    ]


def changes(before: dict[str, tuple[str, ...]], pods: Sequence[PodRow], now: datetime) -> list[str]:
    """A line for each pod that changed since the last call; updates `before` (by uid)."""
    lines = []
    present = set()
    for row in pods:
        present.add(row.uid)
        shown = (*cells(row, now)[:4], without_figures(row.now))
        if before.get(row.uid) != shown:
            before[row.uid] = shown
            lines.append("  ".join([now.astimezone().strftime("%H:%M:%S"), *shown[:4], row.now or "-"]))
    removed = [uid for uid in before if uid not in present]
    return lines + [f"{now.astimezone():%H:%M:%S}  {before.pop(uid)[0]}  removed" for uid in removed]


def follow(client: AgentClient, namespace: str) -> None:
    """Shows the table until interrupted: in place on a terminal, changes as lines elsewhere."""
    if on_terminal():
        with live_text() as shown:
            while True:
                pods = requested_pods(client, namespace).pods
                shown(pods_text(pods, broken_manifests(client), datetime.now(UTC)))
                time.sleep(SECONDS)
    before: dict[str, tuple[str, ...]] = {}
    while True:
        for line in changes(before, requested_pods(client, namespace).pods, datetime.now(UTC)):
            write(line)
        time.sleep(SECONDS)


def _styles(row: PodRow) -> list[str]:
    ready = "green" if row.is_ready or row.phase == "Succeeded" else "yellow"
    return ["", _PHASE_STYLES.get(row.phase, ""), ready, "red" if row.restarts else "", "", "dim"]
