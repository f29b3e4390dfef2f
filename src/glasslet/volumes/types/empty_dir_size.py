"""How large an emptyDir in memory may grow, and which huge pages one is made of."""

from __future__ import annotations

from decimal import Decimal

from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.api.volume import EmptyDirVolumeSource
from glasslet.volumes.plugin import VolumeProblem

HUGE_PAGES = "HugePages"
_RESOURCE = "hugepages-"


def tmpfs_size(source: EmptyDirVolumeSource, *, pod_limit: int, allocatable: int) -> int:
    """Bytes: the least of the volume's sizeLimit, the pod's memory limit and what the node can give; each 0 where there
    is none. 0 leaves it to the kernel (half of the memory)."""
    own = source.size_limit.value() if source.size_limit is not None else 0
    return min((size for size in (own, pod_limit, allocatable) if size > 0), default=0)


def page_size(medium: str, pod: Pod) -> str:
    """The page size of a HugePages medium, as the pod's requests name it (`2Mi`). Raises VolumeProblem if no container
    requests such pages, or several sizes are requested and the medium names none."""
    requested = _page_sizes(pod)
    if medium == HUGE_PAGES:
        if len(requested) > 1:
            raise VolumeProblem(f"medium: {medium} can't be used if container requests multiple huge page sizes")
        found = next(iter(requested.values()), None)
    else:
        found = requested.get(_size(medium.removeprefix(f"{HUGE_PAGES}-")) or Decimal(-1))
    if found is None:
        raise VolumeProblem(
            f"medium {medium}: hugePages storage requested, but there is no resource request for huge pages"
        )
    return found


def _page_sizes(pod: Pod) -> dict[Decimal, str]:
    spec = pod.spec
    requests = [c.resources.requests for c in (*spec.containers, *spec.init_containers)]
    if spec.resources is not None:
        requests.append(spec.resources.requests)
    found: dict[Decimal, str] = {}
    for request in requests:
        for name in request:
            text = name.removeprefix(_RESOURCE)
            size = _size(text) if name.startswith(_RESOURCE) else None
            if size is not None:
                found.setdefault(size, text)
    return found


def _size(text: str) -> Decimal | None:
    try:
        return Quantity.parse(text).amount
    except ValueError:
        return None
