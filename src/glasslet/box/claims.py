"""Claims on one machine: each is a folder, or a PersistentVolume of the same documents. Pure.

A claim without a fitting PersistentVolume is the folder `claims/NAMESPACE/NAME` of the state folder. It outlives pods.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from glasslet.box.documents import BoxObject, DocumentFinding, Plain

_SPACE = uuid.UUID("0f5c3b0a-8c3f-5a52-9a67-3d0d3a0e3a11")
_PATHS = ("hostPath", "local", "nfs", "iscsi")


class BoundClaims(Struct, frozen=True, kw_only=True):
    """`objects`: claims and volumes as an API server would hold them, by path; `folders`: those to make."""

    objects: dict[str, Plain]
    folders: tuple[Path, ...]
    findings: tuple[DocumentFinding, ...] = ()


def bound(claims: Sequence[BoxObject], volumes: Sequence[BoxObject], folder: Path) -> BoundClaims:
    """Binds each claim to a volume."""
    objects: dict[str, Plain] = {}
    folders: list[Path] = []
    findings: list[DocumentFinding] = []
    free = {volume.name: volume for volume in volumes}
    # Those that name their volume choose first.
    for claim in sorted(claims, key=lambda one: not _spec(one).get("volumeName")):
        wanted = _wanted(claim, free)
        if isinstance(wanted, DocumentFinding):
            findings.append(wanted)
            continue
        if wanted is None:
            place = folder / claim.namespace / claim.name
            folders.append(place)
            name, spec = f"folder-{claim.namespace}-{claim.name}", {"local": {"path": str(place)}}
        else:
            del free[wanted.name]
            name, spec = wanted.name, dict(_spec(wanted))
        objects.update(_pair(claim, name, spec))
    return BoundClaims(objects=objects, folders=tuple(folders), findings=tuple(findings))


def _wanted(claim: BoxObject, free: dict[str, BoxObject]) -> BoxObject | DocumentFinding | None:
    """The volume of the documents that the claim takes, None if a folder does."""
    spec = _spec(claim)
    if spec.get("volumeMode") == "Block":
        return DocumentFinding(
            claim.place, f"{claim} stays unbound: a folder is no block device; make a PersistentVolume"
        )
    named = spec.get("volumeName")
    if named:
        found = free.get(str(named))
        if found is None:
            return DocumentFinding(
                claim.place, f"{claim}: spec.volumeName: {named}: no free PersistentVolume", broken=True
            )
        return found if _kind(found) else _unusable(found)
    for volume in free.values():
        if not _kind(volume):
            continue
        reference = _spec(volume).get("claimRef")
        if isinstance(reference, dict):
            if (reference.get("namespace"), reference.get("name")) == (claim.namespace, claim.name):
                return volume
        elif spec.get("storageClassName") and spec["storageClassName"] == _spec(volume).get("storageClassName"):
            return volume
    return None


def _pair(claim: BoxObject, volume: str, spec: Plain) -> tuple[tuple[str, Plain], tuple[str, Plain]]:
    """Claim and volume, bound to each other."""
    wanted, meta = _spec(claim), claim.body["metadata"]
    uid = str(uuid.uuid5(_SPACE, claim.key))
    requests = (wanted.get("resources") or {}).get("requests") or {}
    capacity = spec.get("capacity") or {"storage": requests.get("storage", "1Gi")}
    modes = wanted.get("accessModes") or ["ReadWriteOnce"]
    bound_claim = {
        "metadata": {"name": claim.name, "namespace": claim.namespace, "uid": uid, **_owners(meta)},
        "spec": {**wanted, "volumeName": volume, "accessModes": modes},
        "status": {"phase": "Bound", "capacity": capacity},
    }
    reference = {"namespace": claim.namespace, "name": claim.name, "uid": uid}
    bound_volume = {
        "metadata": {"name": volume},
        "spec": {"capacity": capacity, "accessModes": modes, "volumeMode": "Filesystem", **spec, "claimRef": reference},
        "status": {"phase": "Bound"},
    }
    return (
        (f"api/v1/namespaces/{claim.namespace}/persistentvolumeclaims/{claim.name}", bound_claim),
        (f"api/v1/persistentvolumes/{volume}", bound_volume),
    )


def claims_of_ephemeral_volumes(pod: Plain, place: str) -> list[BoxObject]:
    """The claims of a pod's generic ephemeral volumes, which the pod owns (KEP-1698)."""
    meta = pod["metadata"]
    made = []
    for volume in pod["spec"].get("volumes") or ():
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate") if isinstance(volume, dict) else None
        if not isinstance(template, dict):
            continue
        name = f"{meta['name']}-{volume.get('name', '')}"
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
        metadata = {"name": name, "namespace": meta["namespace"], "ownerReferences": [owner]}
        body = {"metadata": metadata, "spec": dict(template.get("spec") or {})}
        kind = "PersistentVolumeClaim"
        made.append(BoxObject(kind=kind, namespace=meta["namespace"], name=name, body=body, place=place))
    return made


def _owners(meta: Plain) -> Plain:
    return {"ownerReferences": meta["ownerReferences"]} if meta.get("ownerReferences") else {}


def _kind(volume: BoxObject) -> str | None:
    return next((kind for kind in _PATHS if isinstance(_spec(volume).get(kind), dict)), None)


def _unusable(volume: BoxObject) -> DocumentFinding:
    return DocumentFinding(volume.place, f"{volume}: spec: want one of {', '.join(_PATHS)}", broken=True)


def _spec(one: BoxObject) -> Plain:
    spec = one.body.get("spec")
    return spec if isinstance(spec, dict) else {}
