"""Labels and the annotation that a kubelet gives its node. Pure."""

from __future__ import annotations

from glasslet.node.settings import OPERATING_SYSTEM, NodeSettings

HOSTNAME = "kubernetes.io/hostname"
OS = "kubernetes.io/os"
ARCH = "kubernetes.io/arch"
BETA_OS = "beta.kubernetes.io/os"
BETA_ARCH = "beta.kubernetes.io/arch"
MANAGED_ATTACH = "volumes.kubernetes.io/controller-managed-attach-detach"
RECONCILED = (
    HOSTNAME, "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type", OS, ARCH, BETA_OS, BETA_ARCH,
)  # fmt: skip
"""Labels that the agent restores on a registered node if it has a value for them. Others stay as they are, also those
of an earlier --node-labels."""


def node_labels(settings: NodeSettings) -> dict[str, str]:
    """Labels of a new node; --node-labels may say otherwise about each of them."""
    return {
        HOSTNAME: settings.name,
        OS: OPERATING_SYSTEM,
        ARCH: settings.architecture,
        BETA_OS: OPERATING_SYSTEM,
        BETA_ARCH: settings.architecture,
        **settings.labels,
    }


def node_annotations(settings: NodeSettings) -> dict[str, str]:
    """Annotations of a new node."""
    return {MANAGED_ATTACH: "true"} if settings.controller_attaches else {}
