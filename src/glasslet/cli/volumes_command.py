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
    if answer.problem:
        raise Failure(answer.problem)
    show(answer, form, lambda: volumes_text(answer))


def volumes_text(answer: VolumesAnswer) -> str:
    """The answer as text."""
    rows = [_cells(row) for row in answer.volumes]
    parts = [table(_HEADERS, fitted(rows, _HEADERS, columns=(0, 1, 2, 6))) if rows else "no volumes"]
    staged = [[one.driver, one.handle, one.mounted or "no", ", ".join(one.users) or "-"] for one in answer.staged]
    if staged:
        parts += ["", table(_STAGED, fitted(staged, _STAGED, columns=(1, 3)))]
    drivers = [[one.name, one.version, one.endpoint] for one in answer.drivers]
    parts += ["", table(_DRIVERS, fitted(drivers, _DRIVERS, columns=(2,))) if drivers else "no CSI drivers"]
    return "\n".join(parts)


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
