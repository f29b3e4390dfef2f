"""`glasslet images`: lists the node's images as garbage collection sees them."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from glasslet.answers.images import ImageDisk, ImageRow, ImagesAnswer
from glasslet.answers.words import duration, size_words
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.failure import Failure
from glasslet.cli.output import fitted, output_option, show, table

_HEADERS = ("GOES", "IMAGE", "SIZE", "LAST USED", "USED BY", "WHY")
_DEAD_HEADERS = ("POD", "CONTAINER", "ATTEMPT", "WHAT HAPPENS")


@click.command("images")
@click.option("--dead", is_flag=True, help="The dead containers as well, and when each goes.")
@output_option
@click.pass_obj
def command(place: AgentPlace, dead: bool, form: str) -> None:
    """List the images of the node: size, last use, users, and which would be removed in which order.

    Nothing is removed: garbage collection does that by itself, by age, when the disk of images is full, and when the
    node is short of disk. GOES numbers the images in the order of their removal; "-" stays.
    """
    answer = find_agent(place).get("/node/images", ImagesAnswer)
    if answer.problem:
        raise Failure(answer.problem)
    show(answer, form, lambda: images_text(answer, datetime.now(UTC), dead=dead))


def images_text(answer: ImagesAnswer, now: datetime, *, dead: bool) -> str:
    """The answer as text."""
    parts = [_disk_line(answer.disk) if answer.disk is not None else "the disk of images cannot be measured"]
    rows = [_cells(row, now) for row in answer.images]
    parts.append(table(_HEADERS, fitted(rows, _HEADERS, columns=(1, 4, 5))) if rows else "no images")
    if dead:
        others = [[one.pod, one.container, str(one.attempt), one.when] for one in answer.dead_containers]
        shown = table(_DEAD_HEADERS, fitted(others, _DEAD_HEADERS, columns=(0, 1, 3))) if others else ""
        parts += ["", shown or "no dead containers"]
    elif answer.dead_containers:
        parts.append(f"{len(answer.dead_containers)} dead containers (--dead lists them)")
    return "\n".join(parts)


def _disk_line(disk: ImageDisk) -> str:
    text = f"disk of images: {disk.percent} % of {size_words(disk.capacity)} full, {size_words(disk.available)} free"
    if disk.begins_percent == 100:
        return f"{text}; nothing is removed by itself for space (imageGCHighThresholdPercent: 100)"
    if disk.to_free:
        return f"{text}; the next collection frees {size_words(disk.to_free)}, down to {disk.until_percent} %"
    return f"{text}; a collection begins at {disk.begins_percent} %, and ends at {disk.until_percent} %"


def _cells(row: ImageRow, now: datetime) -> list[str]:
    used_by = ", ".join(row.used_by) + (
        f" and {row.users - len(row.used_by)} more" if row.users > len(row.used_by) else ""
    )
    if row.used_by:
        last = "now"
    elif row.last_used is not None:
        last = f"{duration((now - row.last_used).total_seconds())} ago"
    else:
        last = "never seen"
    why = row.stays or ("never seen in use, so before those that were" if row.last_used is None else "by its last use")
    return [str(row.place or "-"), row.name, size_words(row.size), last, used_by or "-", why]
