"""Finds the pod that POD means: a name, `namespace/name`, or the unique beginning of either."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from glasslet.answers.words import nearest
from glasslet.cli.agent_client import AgentClient, PodName
from glasslet.cli.failure import Failure


def in_namespace(typed: str, namespace: str) -> str:
    """POD with the namespace of `-n`. Raises UsageError if POD names another."""
    if not namespace or not typed:
        return typed
    own, slash, _ = typed.rpartition("/")
    if not slash:
        return f"{namespace}/{typed}"
    if own != namespace:
        raise click.UsageError(f"-n {namespace}: POD {typed} names another namespace")
    return typed


def living_pod(client: AgentClient, typed: str) -> PodName:
    """A pod that is on the node now. Raises Failure."""
    return choose(typed, client.pod_names(typed), place=client.place)


def recorded_pod(client: AgentClient, typed: str) -> PodName:
    """A pod that is on the node or has a record; the former comes first. Raises Failure."""
    living, recorded = client.recorded_pod_names(typed)
    try:
        return choose(typed, list(dict.fromkeys(living)), place=client.place)
    except Failure:
        return choose(typed, list(dict.fromkeys(recorded)), place=client.place)


def choose(typed: str, pods: Sequence[PodName], *, place: str = "on this node") -> PodName:
    """The one pod that `typed` means; `place`: where the pods are, in words. Raises Failure that names the candidates
    or the nearest."""
    namespace, slash, name = typed.rpartition("/")
    inside = [pod for pod in pods if not slash or pod.namespace == namespace]
    exact = [pod for pod in inside if pod.name == name]
    starting = [pod for pod in inside if name and pod.name.startswith(name)]
    fitting = list(dict.fromkeys(exact or starting))
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise Failure(f"{typed} is ambiguous: {_listed(fitting)}")
    if not pods:
        raise Failure(f"no pod {typed}: there are no pods {place}")
    near = nearest(typed, [str(pod) for pod in pods])
    hint = f"did you mean {_listed(near)}?" if near else f"pods here: {_listed(pods)}"
    raise Failure(f"no pod {typed} {place}; {hint}")


def _listed(pods: Iterable[object]) -> str:
    names = [str(pod) for pod in pods]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
