"""The downward API: fields of the pod and amounts of its containers as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from glasslet.api.container import Container
from glasslet.api.env import ObjectFieldSelector, ResourceFieldSelector
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.api.volume import DownwardAPIVolumeFile
from glasslet.podspec.errors import container_error
from glasslet.podspec.pod_level import has_pod_level, pod_level_limit
from glasslet.podspec.request import NodeFacts

_WITH_KEY = ("metadata.annotations", "metadata.labels")
_IN_VOLUMES = (*_WITH_KEY, "metadata.name", "metadata.namespace", "metadata.uid")
_OVERCOMMITTED = ("cpu", "memory", "ephemeral-storage")
# The escapes of Go strings, in which this format is defined.
_ESCAPES = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\", '"': r"\"",
}  # fmt: skip
_ONE = Quantity.parse("1")
_NOTHING = Quantity.parse("0")


def field_value(selector: ObjectFieldSelector, pod: Pod, node: NodeFacts, pod_ips: tuple[str, ...]) -> str:
    """The value of a pod's field (fieldRef). Raises ConfigError for fields that the downward API lacks."""
    if selector.api_version not in ("", "v1"):
        raise container_error(f"unsupported pod version: {selector.api_version}")
    path, key = _split(selector.field_path)
    meta = pod.metadata
    if key is not None:
        if path not in _WITH_KEY:
            raise container_error(f"field label does not support subscript: {selector.field_path}")
        return (meta.labels if path == "metadata.labels" else meta.annotations).get(key, "")
    match path:
        case "metadata.name":
            return meta.name
        case "metadata.namespace":
            return meta.namespace
        case "metadata.uid":
            return meta.uid
        case "metadata.labels":
            return format_map(meta.labels)
        case "metadata.annotations":
            return format_map(meta.annotations)
        case "spec.nodeName" | "spec.host":
            return pod.spec.node_name
        case "spec.serviceAccountName":
            return pod.spec.service_account_name
    addresses = _addresses(path, pod, node, pod_ips)
    if addresses is None:
        raise container_error(f"field label not supported: {selector.field_path}")
    return addresses


def file_text(item: DownwardAPIVolumeFile, pod: Pod, node: NodeFacts) -> str:
    """The content of one file of a downwardAPI volume. Of the pod's fields only metadata are offered there: the others
    are not known yet when volumes are made, or never change. Raises ConfigError."""
    if item.field_ref is not None:
        path, key = _split(item.field_ref.field_path)
        if path not in _IN_VOLUMES:
            raise container_error(f"unsupported fieldPath: {item.field_ref.field_path}")
        if key is not None and path not in _WITH_KEY:
            raise container_error(f'fieldPath "{item.field_ref.field_path}" does not support subscript')
        return field_value(item.field_ref, pod, node, ())
    if item.resource_field_ref is not None:
        container, _ = _find(pod, item.resource_field_ref.container_name)
        return resource_value(replace(item.resource_field_ref, container_name=""), pod, container, node)
    return ""


def resource_value(selector: ResourceFieldSelector, pod: Pod, container: Container, node: NodeFacts) -> str:
    """A request or limit in units of the divisor, rounded up (resourceFieldRef). A missing limit of cpu, memory or
    ephemeral storage is the pod's own, else what the node can give."""
    wanted, is_init = container, False
    if selector.container_name:
        wanted, is_init = _find(pod, selector.container_name)
    kind, _, resource = selector.resource.partition(".")
    if kind not in ("requests", "limits") or not (resource in _OVERCOMMITTED or resource.startswith("hugepages-")):
        raise container_error(f"unsupported container resource : {selector.resource}")
    amounts = wanted.resources.requests if kind == "requests" else wanted.resources.limits
    quantity = amounts.get(resource)
    # Only regular containers and the container itself get the node's amounts in place of missing limits.
    if kind == "limits" and resource in _OVERCOMMITTED and not is_init and (quantity is None or quantity == _NOTHING):
        quantity = _ceiling(pod, node, resource)
    divisor = selector.divisor if selector.divisor is not None and selector.divisor != _NOTHING else _ONE
    return str(_divide(quantity or _NOTHING, divisor, milli=resource == "cpu"))


def format_map(values: Mapping[str, str]) -> str:
    """All labels or annotations: sorted lines `key="escaped value"`."""
    return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def preferred_order(ips: Iterable[str], host_ips: tuple[str, ...]) -> tuple[str, ...]:
    """At most one address of each family, first the family of the node's first address."""
    first_is_v6 = bool(host_ips) and ":" in host_ips[0]
    by_family: dict[bool, str] = {}
    for ip in ips:
        by_family.setdefault(":" in ip, ip)
    return tuple(by_family[v6] for v6 in (first_is_v6, not first_is_v6) if v6 in by_family)


def _split(path: str) -> tuple[str, str | None]:
    head, bracket, key = path.removesuffix("']").partition("['")
    return (head, key) if head and bracket and path.endswith("']") else (path, None)


def _addresses(path: str, pod: Pod, node: NodeFacts, pod_ips: tuple[str, ...]) -> str | None:
    if path in ("status.hostIP", "status.hostIPs"):
        if not node.host_ips:
            raise container_error(f"failed to get host IPs for {path}: the node has no address yet")
        return node.host_ips[0] if path == "status.hostIP" else ",".join(node.host_ips)
    if path in ("status.podIP", "status.podIPs"):
        own = pod_ips or (node.host_ips if pod.spec.host_network else ())
        ordered = preferred_order(own, node.host_ips)
        return ",".join(ordered if path == "status.podIPs" else ordered[:1])
    return None


def _find(pod: Pod, name: str) -> tuple[Container, bool]:
    for container in pod.spec.containers:
        if container.name == name:
            return container, False
    for container in pod.spec.init_containers:
        if container.name == name:
            return container, True
    raise container_error(f"container {name} not found")


def _ceiling(pod: Pod, node: NodeFacts, resource: str) -> Quantity | None:
    own = pod_level_limit(pod, resource) if has_pod_level(pod) and resource != "ephemeral-storage" else None
    return own if own is not None and own != _NOTHING else node.allocatable.get(resource)


def _divide(quantity: Quantity, divisor: Quantity, *, milli: bool) -> int:
    if milli:
        return -(-quantity.milli_value() // divisor.milli_value())
    return -(-quantity.value() // divisor.value())
