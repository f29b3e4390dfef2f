"""`glasslet logs`: prints a container's log."""

from __future__ import annotations

import os
import re

import click

from glasslet.cli.agent_client import AgentPlace, find_agent, pod_path
from glasslet.cli.failure import Failure
from glasslet.cli.options import container_option, namespace_option, pod_argument
from glasslet.cli.target import in_namespace, living_pod

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@click.command("logs")
@pod_argument
@namespace_option
@container_option
@click.option("-f", "--follow", is_flag=True, help="Keep printing as the log grows.")
@click.option("-p", "--previous", is_flag=True, help="The log of the previous instance.")
@click.option("--tail", metavar="N", default="", help="Only the last N lines.")
@click.option(
    "--since", metavar="TIME", default="", help="Only newer lines: 5m, 2h30m, 90 (seconds), or an RFC 3339 time."
)
@click.option("--timestamps", is_flag=True, help="Print the time of each line.")
@click.option("--limit-bytes", metavar="N", default="", help="At most N bytes.")
@click.pass_obj
def command(place: AgentPlace, /, pod: str, namespace: str, container: str, **options: object) -> None:
    """Print the log of a container.

    POD is a name, namespace/name, or the beginning of one.
    """
    client = find_agent(place)
    target = living_pod(client, in_namespace(pod, namespace))
    query = {
        "container": container,
        "follow": "1" if options["follow"] else "",
        "previous": "1" if options["previous"] else "",
        "timestamps": "1" if options["timestamps"] else "",
        "tail": "" if options["tail"] == "-1" else str(options["tail"]),
        "since": since(str(options["since"])),
        "limitBytes": str(options["limit_bytes"]),
    }
    try:
        for chunk in client.stream(pod_path(target.namespace, target.name, "/logs"), **query):
            _write_whole(chunk)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def since(text: str) -> str:
    """The value for the agent: seconds, or a time. Raises Failure."""
    if not text or text.replace(".", "", 1).isdecimal() or "T" in text:
        return text
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise Failure(f"--since: not a time: {text!r}; allowed: 5m, 2h30m, 90 (seconds), or an RFC 3339 time")
    return f"{sum(float(number) * _SECONDS[unit] for number, unit in parts):.3f}"


def _write_whole(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
