"""The labels of a kubelet's sandboxes and containers."""

from __future__ import annotations

from typing import Final

POD_NAME: Final = "io.kubernetes.pod.name"
POD_NAMESPACE: Final = "io.kubernetes.pod.namespace"
POD_UID: Final = "io.kubernetes.pod.uid"
