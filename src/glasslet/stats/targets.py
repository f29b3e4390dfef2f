"""Which containers are worth reading: the running ones of each pod's present sandbox. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod, ObservedSandbox


class PodTarget(Struct, frozen=True, kw_only=True):
    """One pod of the runtime. `cgroup`: its group, "" where it has none of its own; `pod`: what it was made of, None
    for unknown pods."""

    ref: PodRef
    sandbox: ObservedSandbox
    containers: tuple[ObservedContainer, ...]
    pod: Pod | None
    cgroup: str


class SystemGroups(Struct, frozen=True, kw_only=True):
    """Groups of the node itself, "" where unknown: the agent's, the runtime's, the rest's, and the one above all pods.
    Named as the Summary API names them."""

    kubelet: str = ""
    runtime: str = ""
    misc: str = ""
    pods: str = ""

    def known(self) -> dict[str, str]:
        """Group by name."""
        return {name: group for name in self.__struct_fields__ if (group := getattr(self, name))}


def choose_targets(
    observed: Iterable[ObservedPod], pods: Mapping[PodUID, Pod], pod_cgroup: Callable[[Pod], str]
) -> tuple[PodTarget, ...]:
    """Returns the pods to read. Of several sandboxes a ready one counts, else the newest; pods without any are left
    out."""
    found = []
    for seen in observed:
        sandbox = next((one for one in seen.sandboxes if one.ready), seen.sandboxes[0] if seen.sandboxes else None)
        if sandbox is None:
            continue
        pod = pods.get(seen.uid)
        found.append(
            PodTarget(
                ref=PodRef(seen.namespace, seen.name, seen.uid),
                sandbox=sandbox,
                containers=tuple(
                    c for c in seen.containers if c.phase is ContainerPhase.RUNNING and c.sandbox_id == sandbox.id
                ),
                pod=pod,
                cgroup=pod_cgroup(pod) if pod is not None else "",
            )
        )
    return tuple(found)


def groups_above(targets: Sequence[PodTarget], top: str) -> list[str]:
    """The group above all pods and those between it and the pods (QoS classes), each once."""
    if not top:
        return []
    between = {os.path.dirname(target.cgroup) for target in targets if target.cgroup}
    return [top, *sorted(group for group in between if group != top and group.startswith(top.rstrip("/") + "/"))]
