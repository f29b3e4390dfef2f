"""Paths of the REST API for the objects that a node agent uses."""

from __future__ import annotations

from urllib.parse import quote

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
SERVICES = "/api/v1/services"
EVENTS = "/api/v1/events"
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CERTIFICATE_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
CSI_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
RESOURCE_SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def node(name: str) -> str:
    """One node."""
    return f"{NODES}/{quote(name, safe='')}"


def node_status(name: str) -> str:
    """One node's status subresource."""
    return f"{node(name)}/status"


def lease(name: str) -> str:
    """A node's lease (KEP-589)."""
    return f"{leases()}/{quote(name, safe='')}"


def leases() -> str:
    """The node leases."""
    return "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def namespaced(namespace: str, resource: str, name: str = "") -> str:
    """A core/v1 resource of a namespace: `namespaced("default", "pods", "web")`."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/{resource}"
    return f"{path}/{quote(name, safe='')}" if name else path


def pod(namespace: str, name: str) -> str:
    """One pod."""
    return namespaced(namespace, "pods", name)


def pod_status(namespace: str, name: str) -> str:
    """One pod's status subresource."""
    return f"{pod(namespace, name)}/status"


def persistent_volume(name: str) -> str:
    """One PersistentVolume."""
    return f"/api/v1/persistentvolumes/{quote(name, safe='')}"


def csi_node(name: str) -> str:
    """One CSINode: the drivers of a node."""
    return f"{CSI_NODES}/{quote(name, safe='')}"


def volume_attachment(name: str) -> str:
    """One VolumeAttachment."""
    return f"/apis/storage.k8s.io/v1/volumeattachments/{quote(name, safe='')}"


def service_account_token(namespace: str, name: str) -> str:
    """The token subresource of a service account (TokenRequest)."""
    return f"{namespaced(namespace, 'serviceaccounts', name)}/token"


def resource_claim(namespace: str, name: str) -> str:
    """One ResourceClaim."""
    return f"/apis/resource.k8s.io/v1/namespaces/{quote(namespace, safe='')}/resourceclaims/{quote(name, safe='')}"
