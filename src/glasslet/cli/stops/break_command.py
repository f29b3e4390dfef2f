"""`glasslet break`: holds pods at a place of their way."""

from __future__ import annotations

import re

import click

from glasslet.answers.stops import BreakRequest, BreakRow
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.options import namespace_option
from glasslet.cli.output import output_option, show
from glasslet.cli.stops.holds_text import break_line

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(h))?(?:(\d+(?:\.\d+)?)(m))?(?:(\d+(?:\.\d+)?)(s?))?")


def seconds(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """The seconds of `90`, `90s`, `2m`, `1h30m`."""
    found = _DURATION.fullmatch(value)
    if not value or found is None:
        raise click.BadParameter(f"{value} is no duration; allowed: 90, 90s, 2m, 1h30m", ctx, param)
    parts = found.groups()
    return sum(float(parts[i]) * _UNITS[parts[i + 1] or ""] for i in range(0, 6, 2) if parts[i])


@click.command("break")
@click.argument("at", metavar="PLACE")
@click.option(
    "--pod", metavar="PATTERN", default="", help="Pods by NAMESPACE/NAME or NAME, with * and ?. Default: all."
)
@namespace_option
@click.option("-l", "--selector", metavar="SELECTOR", default="", help="Pods by their labels: app=web,tier in (a,b).")
@click.option("-c", "--container", metavar="NAME", default="", help="Only where the work is about this container.")
@click.option("--after", is_flag=True, help="After the work of that place instead of before it.")
@click.option(
    "--when", metavar="CEL", default="", help="Only if this CEL expression over the fields of `inspect` holds."
)
@click.option("--once", is_flag=True, help="Hold one pod, then remove the break.")
@click.option("--count", metavar="N", type=click.IntRange(min=1), help="Hold so many times, then remove the break.")
@click.option(
    "--for",
    "hold",
    metavar="DURATION",
    callback=seconds,
    default="10m",
    show_default=True,
    help="The most that one hold lasts.",
)
@output_option
@click.pass_obj
def command(
    place: AgentPlace,
    *,
    at: str,
    pod: str,
    namespace: str,
    selector: str,
    container: str,
    after: bool,
    when: str,
    once: bool,
    count: int | None,
    hold: float,
    form: str,
) -> None:
    """Hold pods at PLACE of their way.

    PLACE is a station of `glasslet trace` (seen, merged, woken, admitted, planned, cgroup, volumes, sandbox, image,
    init, created, started, probes, status, stopping, gone), `plan` (each time a plan was made), or one call of the
    runtime (cri:CreateContainer).

    Only the pods that fit are held, and only their work: what runs of them runs on, with its probes, logs and status.
    A hold ends with `glasslet continue`, with the deletion of the pod, after its time, and with the agent.
    """
    if once and count is not None:
        raise click.UsageError("name one of --once and --count")
    wanted = BreakRequest(
        at=at,
        after=after,
        pod=pod,
        namespace=namespace,
        selector=selector,
        container=container,
        when=when,
        hold_seconds=hold,
        count=1 if once else count or 0,
    )
    row = find_agent(place).post("/breaks", wanted, BreakRow)
    show(row, form, lambda: break_line(row))
