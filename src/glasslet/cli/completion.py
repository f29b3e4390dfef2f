"""Names for the shell's completion, from the agent that runs; none without one."""

from __future__ import annotations

from pathlib import Path

import click

from glasslet.answers.pods import PodDescription, PodsAnswer
from glasslet.answers.trace import RecordsAnswer
from glasslet.cli.agent_client import AgentClient, find_agent, pod_path
from glasslet.cli.failure import Failure
from glasslet.cli.target import PodName, in_namespace, living_pod


def pod_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Pods on the node; `namespace/name` where the namespace was begun, or a name occurs twice."""
    try:
        pods = [PodName(row.namespace, row.name) for row in _client(ctx).get("/pods", PodsAnswer).pods]
    except Failure:
        return []
    return fitting(pods, incomplete, namespace=ctx.params.get("namespace") or "")


def recorded_pod_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """As `pod_names`, removed pods with a record included."""
    try:
        rows = _client(ctx).get("/records", RecordsAnswer).records
    except Failure:
        return []
    pods = [PodName(row.namespace, row.name) for row in rows]
    return fitting(pods, incomplete, namespace=ctx.params.get("namespace") or "")


def namespaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Namespaces of the pods on the node."""
    try:
        pods = _client(ctx).get("/pods", PodsAnswer).pods
    except Failure:
        return []
    return sorted({row.namespace for row in pods if row.namespace.startswith(incomplete)})


def container_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Containers of the pod that stands before on the command line."""
    # Before an option that still lacks its value, click leaves the arguments where they are.
    typed = ctx.params.get("pod") or next(iter(ctx.args), "")
    if not typed:
        return []
    try:
        client = _client(ctx)
        target = living_pod(client, in_namespace(typed, ctx.params.get("namespace") or ""))
        found = client.get(pod_path(target.namespace, target.name), PodDescription).containers
    except (Failure, click.UsageError):
        return []
    return [container.name for container in found if container.name.startswith(incomplete)]


def fitting(pods: list[PodName], incomplete: str, *, namespace: str = "") -> list[str]:
    """The texts that name one pod each and begin with what was typed."""
    inside = list(dict.fromkeys(pod for pod in pods if namespace in ("", pod.namespace)))
    names = [pod.name for pod in inside]
    texts = [str(pod) if "/" in incomplete or names.count(pod.name) > 1 else pod.name for pod in inside]
    return sorted(text for text in texts if text.startswith(incomplete))


def _client(ctx: click.Context) -> AgentClient:
    root_dir: Path | None = ctx.find_root().params.get("root_dir")
    return find_agent(root_dir)
