"""`glasslet inspect`: all that the agent knows of a pod now."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import click

from glasslet.answers.stops import InspectAnswer
from glasslet.cli.agent_client import AgentClient, AgentPlace, PodName, find_agent, pod_path
from glasslet.cli.failure import Failure
from glasslet.cli.options import namespace_option, pod_argument
from glasslet.cli.output import JSON, YAML, printable
from glasslet.cli.target import in_namespace, living_pod

_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]|\[\"([^\"]*)\"\]|\['([^']*)'\]")


@click.command("inspect")
@pod_argument
@click.argument("path", required=False, default="")
@namespace_option
@click.option(
    *("-o", "--output", "form"),
    metavar="yaml|json",
    type=click.Choice([YAML, JSON]),
    default=YAML,
    show_default=True,
    help="The form of the output.",
)
@click.pass_obj
def command(place: AgentPlace, pod: str, path: str, namespace: str, form: str) -> None:
    """Show all that the agent knows of a pod now: the pod as it is to be, what was observed of it and when, the plan
    with the reason for each action, back-offs, probes, volumes, the request that is about to be sent, and the code
    where it is. Values that may come from a Secret are replaced by their length.

    PATH is one part of it: .plan.actions[0]. The pod need not be held.
    """
    client = find_agent(place)
    answer = inspected(client, living_pod(client, in_namespace(pod, namespace)))
    write_part(part_of(answer.tree, path), form)


def inspected(client: AgentClient, pod: PodName) -> InspectAnswer:
    """The tree of one pod."""
    return client.get(pod_path(pod.namespace, pod.name, "/inspect"), InspectAnswer)


def part_of(tree: object, path: str) -> Any:
    """The part at a path (`.plan.actions[0]`); the whole for "" and `.`. Raises Failure."""
    at, found = 0, tree
    path = path if path.startswith((".", "[")) or not path else f".{path}"
    if path == ".":
        return tree
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise Failure(f'PATH: {path!r} cannot be read from column {at + 1} on; allowed: .field, [0], ["key"]')
        field, index, *quoted = step.groups()
        key = field if field is not None else next((text for text in quoted if text is not None), None)
        found = _child(found, key, int(index) if index is not None else None, path[:at] or ".")
        at = step.end()
    return found


def write_part(part: Any, form: str) -> None:
    """Scalars as they are, all else as YAML or JSON."""
    if form == JSON:
        sys.stdout.write(json.dumps(part, indent=2, ensure_ascii=False) + "\n")
    elif isinstance(part, dict | list):
        import yaml

        yaml.safe_dump(part, sys.stdout, sort_keys=False, allow_unicode=True)
    else:
        sys.stdout.write(printable("" if part is None else str(part)) + "\n")


def _child(parent: object, key: str | None, index: int | None, where: str) -> object:
    if key is not None and isinstance(parent, dict):
        if key in parent:
            return parent[key]
        raise Failure(f"PATH: {where} has no field {key}; it has {', '.join(map(str, parent)) or 'none'}")
    if index is not None and isinstance(parent, list):
        if index < len(parent):
            return parent[index]
        raise Failure(f"PATH: {where} has {len(parent)} elements, none at {index}")
    raise Failure(
        f"PATH: {where} is {type(parent).__name__}: it has no {'field ' + key if key else f'element {index}'}"
    )
