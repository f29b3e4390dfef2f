"""From a claim in a pod to the volume behind it: PersistentVolumeClaim, PersistentVolume, and whether they are one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from glasslet.api.formats import int64
from glasslet.api.node_terms import selector_allows
from glasslet.api.persistent_volume import (
    BOUND,
    FILESYSTEM,
    READ_WRITE_ONCE_POD,
    PersistentVolume,
    PersistentVolumeClaim,
)
from glasslet.api.pod import Pod
from glasslet.api.volume import Volume
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import APIError
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest
from glasslet.volumes.problems import is_unreachable

PROTECTION = "kubernetes.io/pvc-protection"
GROUP_ANNOTATION = "pv.beta.kubernetes.io/gid"

T = TypeVar("T")


class ClaimProblem(VolumeProblem):
    """There is no volume behind the claim that this pod may use, or not yet. The text is upstream's and names both."""


class _ServerUnreachable(ClaimProblem):
    """The API server does not answer."""


class Client(Protocol):
    """Reads objects (`kubeapi.client`). Raises APIError."""

    async def get(self, path: str, kind: type[T]) -> T: ...


class Notes(Protocol):
    """Volumes behind claims as last read (`volumes.claim_notes`). Raises OSError."""

    async def keep(self, uid: str, volume: str, found: PersistentVolume) -> None: ...
    async def read(self, uid: str, volume: str) -> PersistentVolume | None: ...


class Claims:
    """Finds the volumes behind claims. `labels`: those of this node, whose name is `node`; `client` None: there is no
    API server. Knows which pods use which volume, for those that only one may use at a time."""

    def __init__(
        self, *, client: Client | None, notes: Notes, node: str, labels: Callable[[], Mapping[str, str]]
    ) -> None:
        self._client = client
        self._notes = notes
        self._node = node
        self._labels = labels
        self._users: dict[str, set[str]] = {}

    async def resolve(self, pod: Pod, volume: Volume) -> VolumeRequest:
        """Returns the volume to mount for a `persistentVolumeClaim` or `ephemeral` volume. Raises ClaimProblem if the
        claim does not lead to a volume, VolumeProblem if the volume is not for this pod or node."""
        what = f"error processing PVC {pod.metadata.namespace}/{claim_of(pod, volume)}"
        if self._client is None:
            raise ClaimProblem(f"{what}: claims need an API server, and this agent runs without one")
        try:
            found = await self._ask(self._client, pod, volume, what)
        except _ServerUnreachable:
            known = await self._notes.read(pod.metadata.uid, volume.name)
            if known is None:
                raise
            found = known
        self._check(pod, volume, found)
        await self._notes.keep(pod.metadata.uid, volume.name, found)
        source = volume.persistent_volume_claim
        return VolumeRequest(
            pod=pod,
            volume=_as_volume(volume, found),
            persistent=found,
            read_only=source is not None and source.read_only,
        )

    def forget(self, uid: str) -> None:
        """The pod has no volumes on this node any more."""
        for name, users in list(self._users.items()):
            users.discard(uid)
            if not users:
                del self._users[name]

    async def _ask(self, client: Client, pod: Pod, volume: Volume, what: str) -> PersistentVolume:
        claim = await _read_claim(client, pod.metadata.namespace, claim_of(pod, volume), what)
        if volume.ephemeral is not None and not _made_for(claim, pod):
            raise ClaimProblem(_not_owner(claim, pod))
        return await _read_volume(client, claim, what)

    def _check(self, pod: Pod, volume: Volume, found: PersistentVolume) -> None:
        mode = found.spec.volume_mode or FILESYSTEM
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        if mode != FILESYSTEM and any(m.name == volume.name for c in containers for m in c.volume_mounts):
            raise ClaimProblem(f"volume {volume.name} has volumeMode {mode}, but is specified in volumeMounts")
        if mode == FILESYSTEM and any(d.name == volume.name for c in containers for d in c.volume_devices):
            raise ClaimProblem(f"volume {volume.name} has volumeMode {mode}, but is specified in volumeDevices")
        affinity = found.spec.node_affinity
        required = affinity.required if affinity is not None else None
        if required is not None and not selector_allows(required, name=self._node, labels=self._labels()):
            raise VolumeProblem("no matching NodeSelectorTerms", step="NodeAffinity check", of=found.metadata.name)
        users = self._users.setdefault(found.metadata.name, set())
        if found.spec.access_modes == (READ_WRITE_ONCE_POD,) and users - {pod.metadata.uid}:
            text = "volume uses the ReadWriteOncePod access mode and is already in use by another pod"
            raise VolumeProblem(text, of=found.metadata.name)
        users.add(pod.metadata.uid)


def claim_of(pod: Pod, volume: Volume) -> str:
    """The name of the claim of a volume; that of an ephemeral one follows from the pod's name."""
    source = volume.persistent_volume_claim
    return source.claim_name if source is not None else f"{pod.metadata.name}-{volume.name}"


def claim_problem(claim: PersistentVolumeClaim) -> str:
    """Why the claim cannot be used, "" if it can."""
    if claim.metadata.deletion_timestamp is not None and PROTECTION not in claim.metadata.finalizers:
        return "PVC is being deleted"
    if claim.status.phase != BOUND:
        return "PVC is not bound"
    return "" if claim.spec.volume_name else "PVC has empty pvc.Spec.VolumeName"


def binding_problem(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why the volume is not the claim's, "" if it is."""
    name, reference = volume.metadata.name, volume.spec.claim_ref
    if reference is None:
        return f"found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
    if reference.uid != claim.metadata.uid:
        return (
            f"found PV object {name} but its pv.Spec.ClaimRef.UID {reference.uid} does not point to "
            f"claim.UID {claim.metadata.uid}"
        )
    return ""


def volume_group(volume: PersistentVolume | None) -> int | None:
    """The group that processes need to have to use the volume, if it names one."""
    text = volume.metadata.annotations.get(GROUP_ANNOTATION, "") if volume is not None else ""
    return int64(text) if text.isdigit() else None


async def _read_claim(client: Client, namespace: str, name: str, what: str) -> PersistentVolumeClaim:
    path = paths.namespaced(namespace, "persistentvolumeclaims", name)
    try:
        claim = await client.get(path, PersistentVolumeClaim)
    except APIError as error:
        raise _failed(error, f"{what}: failed to fetch PVC from API server: {error.message}") from error
    if problem := claim_problem(claim):
        raise ClaimProblem(f"{what}: {problem}")
    return claim


async def _read_volume(client: Client, claim: PersistentVolumeClaim, what: str) -> PersistentVolume:
    name = claim.spec.volume_name
    try:
        found = await client.get(paths.persistent_volume(name), PersistentVolume)
    except APIError as error:
        raise _failed(error, f"{what}: failed to fetch PV {name} from API server: {error.message}") from error
    if problem := binding_problem(found, claim):
        raise ClaimProblem(f"{what}: {problem}")
    return found


def _failed(error: APIError, text: str) -> ClaimProblem:
    return _ServerUnreachable(text) if is_unreachable(error) else ClaimProblem(text)


def _made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    return claim.metadata.namespace == pod.metadata.namespace and any(
        owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references
    )


def _not_owner(claim: PersistentVolumeClaim, pod: Pod) -> str:
    return (
        f"PVC {claim.metadata.namespace}/{claim.metadata.name} was not created for pod "
        f"{pod.metadata.namespace}/{pod.metadata.name} (pod is not owner)"
    )


def _as_volume(volume: Volume, found: PersistentVolume) -> Volume:
    """The volume in the form of one that the pod has itself. A local one has no such form."""
    spec = found.spec
    return Volume(name=volume.name, host_path=spec.host_path, nfs=spec.nfs, iscsi=spec.iscsi)
