"""Kinds of resources by their names (cpu, hugepages-2Mi, example.com/gpu)."""

from __future__ import annotations

from glasslet.api.formats import qualified_name_problems

HUGE_PAGES_PREFIX = "hugepages-"
REQUESTS_PREFIX = "requests."
_NATIVE_DOMAIN = "kubernetes.io/"
CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_WHOLE = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_STANDARD = (
    _WHOLE
    | CONTAINER_RESOURCES
    | {f"{side}.{name}" for side in ("requests", "limits") for name in CONTAINER_RESOURCES}
    | {"storage", "requests.storage"}
)


def is_huge_pages(name: str) -> bool:
    """`hugepages-<size>`."""
    return name.startswith(HUGE_PAGES_PREFIX)


def is_native(name: str) -> bool:
    """A resource of Kubernetes itself: without a domain, or of the domain kubernetes.io."""
    return "/" not in name or _NATIVE_DOMAIN in name


def is_extended(name: str) -> bool:
    """A resource that Kubernetes does not define: `example.com/gpu`."""
    if is_native(name) or name.startswith(REQUESTS_PREFIX):
        return False
    return not qualified_name_problems(REQUESTS_PREFIX + name)


def may_overcommit(name: str) -> bool:
    """Whether a limit above the request is allowed; huge pages and extended resources cannot be shared."""
    return is_native(name) and not is_huge_pages(name)


def is_counted_whole(name: str) -> bool:
    """Resources that exist in whole pieces only."""
    return name in _WHOLE or is_extended(name)


def is_standard(name: str) -> bool:
    """A resource name without a domain that Kubernetes knows."""
    return name in _STANDARD or name.startswith((HUGE_PAGES_PREFIX, REQUESTS_PREFIX + HUGE_PAGES_PREFIX))


def may_be_set_for_pod(name: str) -> bool:
    """Resources that `spec.resources` of a pod may hold."""
    return name in ("cpu", "memory") or is_huge_pages(name)
