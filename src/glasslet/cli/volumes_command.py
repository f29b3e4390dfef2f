"""`glasslet volumes`: lists the volumes on the node, and the CSI drivers."""

from __future__ import annotations

import click

from glasslet.answers.volumes import VolumeRow, VolumesAnswer
from glasslet.answers.words import size_words
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.failure import Failure
from glasslet.cli.output import fitted, output_option, show, table

_HEADERS = ("POD", "VOLUME", "TYPE", "MOUNTED", "USED", "SIZE", "HANDLE")
_STAGED = ("STAGED BY", "HANDLE", "MOUNTED", "PODS")
_DRIVERS = ("DRIVER", "VERSION", "SOCKET")


@click.command("volumes")
@output_option
@click.pass_obj
def command(place: AgentPlace, form: str) -> None:
    """List the volumes on the node as they are on disk: pods, mounts, sizes, CSI drivers.

    A volume that is not mounted though its driver may have published it has "no" under MOUNTED; it is tried again, or
    undone with its pod. What is staged and used by no pod is undone within a minute.
    """
    answer = find_agent(place).get("/node/volumes", VolumesAnswer)
    if answer.problem and not answer.volumes and not answer.drivers:
        raise Failure(answer.problem)
    show(answer, form, lambda: volumes_text(answer))


def volumes_text(answer: VolumesAnswer) -> str:
    """The answer as text; with the nodes, where it is about several."""
    volumes = [(one.node, _cells(one)) for one in answer.volumes]
    staged = [
        (one.node, [one.driver, one.handle, one.mounted or "no", ", ".join(one.users) or "-"]) for one in answer.staged
    ]
    drivers = [(one.node, [one.name, one.version, one.endpoint]) for one in answer.drivers]
    parts = [_table(_HEADERS, volumes, (0, 1, 2, 6)) if volumes else "no volumes"]
    if staged:
        parts += ["", _table(_STAGED, staged, (1, 3))]
    parts += ["", _table(_DRIVERS, drivers, (2,)) if drivers else "no CSI drivers"]
    if answer.problem:
        parts += ["", answer.problem]
    return "\n".join(parts)


def _table(headers: tuple[str, ...], rows: list[tuple[str, list[str]]], columns: tuple[int, ...]) -> str:
    if not any(node for node, _ in rows):
        plain = [cells for _, cells in rows]
        return table(headers, fitted(plain, headers, columns=columns))
    headers = ("NODE", *headers)
    placed = [[node, *cells] for node, cells in rows]
    return table(headers, fitted(placed, headers, columns=tuple(column + 1 for column in columns)))


def _cells(row: VolumeRow) -> list[str]:
    mounted = "device" if row.device else row.mounted or ("no" if row.published else "-")
    return [
        row.pod or row.uid,
        row.volume,
        row.driver or row.plugin.removeprefix("kubernetes.io/"),
        mounted,
        size_words(row.used) if row.capacity else "-",
        size_words(row.capacity) if row.capacity else "-",
        row.handle or "-",
    ]
