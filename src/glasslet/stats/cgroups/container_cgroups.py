"""Which control group a container or sandbox is in. The runtime chooses the name; there are only a few habits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

_BELOW_POD = ("{pod}/{own}", "{pod}/cri-containerd-{own}.scope", "{pod}/crio-{own}.scope", "{pod}/crio-{own}")
_WITHOUT_POD = ("/k8s.io/{own}",)
"""Where containerd puts what was made without a parent."""


class ContainerCgroups:
    """Finds groups and remembers them: a container never moves."""

    def __init__(self, *, exists: Callable[[str], bool]) -> None:
        self._exists = exists
        self._known: dict[str, str] = {}

    def find(self, own: str, pod_cgroup: str) -> str:
        """The group of the container or sandbox with this id; "" if there is none (any more). `pod_cgroup`: its
        pod's, "" where pods have none."""
        known = self._known.get(own)
        if known is not None:
            return known
        patterns = (*_BELOW_POD, *_WITHOUT_POD) if pod_cgroup else _WITHOUT_POD
        for pattern in patterns:
            group = pattern.format(pod=pod_cgroup.rstrip("/"), own=own)
            if self._exists(group):
                self._known[own] = group
                return group
        return ""

    def keep_only(self, ids: Iterable[str]) -> None:
        """Forgets all others."""
        wanted = set(ids)
        self._known = {own: group for own, group in self._known.items() if own in wanted}
