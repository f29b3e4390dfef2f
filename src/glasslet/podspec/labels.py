"""Labels and annotations that identify the pod of a sandbox or container in the runtime; and the container hash."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from glasslet.api.codec import encode
from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.host.files.go_checksum import fnv_1a

POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"
POD_UID = "io.kubernetes.pod.uid"
CONTAINER_NAME = "io.kubernetes.container.name"

HASH = "io.kubernetes.container.hash"
RESTART_COUNT = "io.kubernetes.container.restartCount"
TERMINATION_MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath"
TERMINATION_MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy"
PORTS = "io.kubernetes.container.ports"
PRE_STOP = "io.kubernetes.container.preStopHandler"
TERMINATION_GRACE = "io.kubernetes.pod.terminationGracePeriod"
DELETION_GRACE = "io.kubernetes.pod.deletionGracePeriod"

_HTML_SAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def container_hash(container: Container) -> str:
    """The hash over name and image that decides whether a running container still matches the spec.
    FNV-1a 32 in hexadecimal, equal to the Go kubelet's, so that neither restarts what the other started."""
    return _hash(container.name, container.image)


def sandbox_labels(pod: Pod) -> dict[str, str]:
    """The pod's own labels and its identity; identity wins."""
    return {**pod.metadata.labels, **_identity(pod)}


def container_labels(pod: Pod, container: Container) -> dict[str, str]:
    """The pod's identity and the container's name."""
    labels = _identity(pod)
    labels[CONTAINER_NAME] = container.name
    return labels


def container_annotations(pod: Pod, container: Container, attempt: int) -> dict[str, str]:
    """Annotations that are needed to stop this container properly when its pod is unknown."""
    notes = {
        HASH: container_hash(container),
        RESTART_COUNT: str(attempt),
        TERMINATION_MESSAGE_PATH: container.termination_message_path,
        TERMINATION_MESSAGE_POLICY: container.termination_message_policy,
    }
    if pod.metadata.deletion_grace_period_seconds is not None:
        notes[DELETION_GRACE] = str(pod.metadata.deletion_grace_period_seconds)
    if pod.spec.termination_grace_period_seconds is not None:
        notes[TERMINATION_GRACE] = str(pod.spec.termination_grace_period_seconds)
    if container.lifecycle is not None and container.lifecycle.pre_stop is not None:
        notes[PRE_STOP] = encode(container.lifecycle.pre_stop).decode()
    if container.ports:
        notes[PORTS] = encode(container.ports).decode()
    return notes


def _identity(pod: Pod) -> dict[str, str]:
    meta = pod.metadata
    return {POD_NAME: meta.name, POD_NAMESPACE: meta.namespace, POD_UID: meta.uid}


@lru_cache(maxsize=1024)
def _hash(name: str, image: str) -> str:
    # Go prints the JSON as a byte slice before hashing it: "([]uint8)[123 34 ...]".
    text = msgspec.json.encode({"image": image, "name": name}).decode().translate(_HTML_SAFE)
    numbers = " ".join(map(str, text.encode()))
    return f"{fnv_1a(f'([]uint8)[{numbers}]'):x}"
