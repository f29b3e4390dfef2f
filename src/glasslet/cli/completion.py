"""Names for the shell's completion, from the agent that runs; none without one."""

from __future__ import annotations

import click

from glasslet.answers.pods import PodDescription, PodsAnswer
from glasslet.cli.agent_client import AgentClient, PodName, pod_path
from glasslet.cli.failure import Failure
from glasslet.cli.target import in_namespace, living_pod


def pod_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Pods on the node; `namespace/name` where the namespace was begun, or a name occurs twice."""
    try:
        pods = _client(ctx).pod_names(incomplete)
    except Failure:
        return []
    return fitting(pods, incomplete, namespace=ctx.params.get("namespace") or "")


def recorded_pod_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """As `pod_names`, removed pods with a record included."""
    try:
        living, pods = _client(ctx).recorded_pod_names(incomplete)
    except Failure:
        return []
    return fitting([*living, *pods], incomplete, namespace=ctx.params.get("namespace") or "")


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
    """The agent of the program that is completed; `kubectl glass` has another one than `glasslet`."""
    client: AgentClient = ctx.find_root().command.client(ctx)  # type: ignore[attr-defined]
    return client
