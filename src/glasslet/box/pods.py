"""Pods here: as workloads want them, and as the agent shows them. Pure."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from glasslet.box.documents import Plain
from glasslet.box.shapes import PodTemplate

_SPACE = uuid.UUID("6c1c1d3e-52f9-5c6c-9a5b-0d1f5f0c8a57")
"""Names in it are pods with their revisions."""
OWNER = "glasslet.dev/owner"
"""Annotation: the workload of a pod (`Deployment/shop/web`)."""


class BoxPod(Struct, frozen=True, kw_only=True):
    """A pod as the agent shows it. `ready_since`: when it became ready, if it is."""

    uid: str
    phase: str
    ready: bool = False
    ready_since: datetime | None = None
    ip: str = ""
    settled: bool = False

    @property
    def over(self) -> bool:
        """All its containers have ended for good."""
        return self.phase in ("Succeeded", "Failed")


class Slot(Struct, frozen=True):
    """A pod that a workload has: its name, the revision of its template, and what else makes it another pod."""

    name: str
    revision: str

    def uid(self, namespace: str) -> str:
        """The pod's UID: another one for each revision, so that a change of the template makes a new pod."""
        return str(uuid.uuid5(_SPACE, f"{namespace}/{self.name}/{self.revision}"))


class WantedPod(Struct, frozen=True, kw_only=True):
    """A pod that is to run. `body` None: its manifest stays as it is (an older revision)."""

    namespace: str
    slot: Slot
    owner: str
    body: Plain | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.slot.name


Seen = Mapping[tuple[str, str], BoxPod]
"""By namespace and name."""


def pod_of(template: PodTemplate, *, namespace: str, slot: Slot, owner: str) -> Plain:
    """The manifest of one pod of a template."""
    spec = copy.deepcopy(template.spec)
    # There is no API server to ask for a token.
    for field in ("serviceAccountName", "serviceAccount", "nodeName", "nodeSelector", "schedulerName"):
        spec.pop(field, None)
    metadata: Plain = {"name": slot.name, "namespace": namespace, "uid": slot.uid(namespace)}
    if template.metadata.labels:
        metadata["labels"] = dict(template.metadata.labels)
    metadata["annotations"] = {**template.metadata.annotations, OWNER: owner}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def current(seen: Seen, namespace: str, slot: Slot) -> BoxPod | None:
    """The pod of a slot, if the agent has it at this revision."""
    found = seen.get((namespace, slot.name))
    return found if found is not None and found.uid == slot.uid(namespace) else None


def available(seen: Seen, namespace: str, slot: Slot, *, now: datetime | None = None, seconds: int = 0) -> bool:
    """Whether the pod of a slot is ready at `now`, and has been for so many seconds."""
    found = current(seen, namespace, slot)
    if found is None or not found.ready:
        return False
    if not seconds or now is None:
        return True
    return found.ready_since is not None and (now - found.ready_since).total_seconds() >= seconds
