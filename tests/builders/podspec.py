"""Requests for the pod-to-runtime conversion, with quiet defaults: one pod with one container on one node."""

from __future__ import annotations

from typing import Any

from glasslet.api.codec import convert
from glasslet.api.pod import Pod
from glasslet.podspec.dns import dns_config
from glasslet.podspec.request import ContainerRequest, NodeFacts, SandboxRequest
from glasslet.runtime.model import Image


def pod_of(*containers: dict[str, Any], meta: dict[str, Any] | None = None, **spec: Any) -> Pod:
    """A pod from manifest values. Containers get a name (`main`, `c1`, ...) and an image unless they have one."""
    named = [{"name": f"c{i}" if i else "main", "image": "busybox"} | c for i, c in enumerate(containers or ({},))]
    metadata = {"name": "web", "namespace": "default", "uid": "uid-1"} | (meta or {})
    return convert({"metadata": metadata, "spec": {"containers": named, "dnsPolicy": "ClusterFirst"} | spec}, Pod)


def node_facts(**changes: Any) -> NodeFacts:
    """A node of 8 GiB with a cluster DNS."""
    facts: dict[str, Any] = {
        "name": "node-1",
        "host_ips": ("192.0.2.1",),
        "memory_capacity": 8 << 30,
        "cluster_dns": ("10.96.0.10",),
        "cluster_domain": "cluster.local",
    }
    return NodeFacts(**(facts | changes))


def container_request(pod: Pod | None = None, *, index: int = 0, **changes: Any) -> ContainerRequest:
    """The request for one of the pod's regular containers."""
    pod = pod or pod_of()
    facts: dict[str, Any] = {
        "pod": pod,
        "container": pod.spec.containers[index],
        "attempt": 0,
        "image": Image(id="sha256:0123", uid=0),
        "node": node_facts(),
    }
    return ContainerRequest(**(facts | changes))


def sandbox_request(pod: Pod | None = None, **changes: Any) -> SandboxRequest:
    """The request for the pod's sandbox."""
    pod = pod or pod_of()
    node = changes.pop("node", node_facts())
    facts: dict[str, Any] = {"pod": pod, "attempt": 0, "node": node, "dns": dns_config(pod, node)}
    return SandboxRequest(**(facts | changes))
