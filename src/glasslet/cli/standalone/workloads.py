"""Pods for one machine out of the objects of a cluster: what `up` runs of a Deployment, and what it leaves out. Pure.

Each workload becomes one pod. A second replica on the same machine would protect from nothing, nothing would spread
requests over both, and both would ask for the same host ports and folders. DaemonSets mean one pod a node anyway.
Claims become folders below the state folder, which stay until `down --purge`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

Plain = dict[str, Any]

_TEMPLATES = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")
_NOT_DONE = {
    "Deployment": "rolling updates",
    "StatefulSet": "stable host names in DNS",
    "DaemonSet": "rolling updates",
}
_SILENT = ("Namespace", "PersistentVolumeClaim")
"""Left out without a word: a pod here needs no Namespace, and a claim is a folder of its pod."""
_WHY_LEFT_OUT = {
    "Service": "no addresses but the pods' own",
    "ConfigMap": "no API server: pods that need it do not start",
    "Secret": "no API server: pods that need it do not start",
}


class NotRunnable(Exception):
    """A workload that no pod can be made of; the text names object, field and what is allowed."""


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of some documents; `notes`: one line for each object that is run in another way than written, or not."""

    pods: tuple[Plain, ...] = ()
    notes: tuple[str, ...] = ()


def is_plain_pod(documents: Sequence[object]) -> bool:
    """Whether the agent reads the file as it is: one document, a Pod, or nothing that this module knows."""
    return not documents or (
        len(documents) == 1 and (not isinstance(documents[0], dict) or documents[0].get("kind") not in _KNOWN)
    )


_KNOWN = (*_TEMPLATES, "CronJob", "List", "Service", "ConfigMap", "Secret", *_SILENT)


def expanded(documents: Sequence[object], *, claims: Path, cron_jobs: bool) -> Expansion:
    """The pods of all documents. `claims`: the folder for claims; `cron_jobs`: their pods run once, now. Raises
    NotRunnable."""
    objects = list(_flat(documents))
    claimed = {_name(one) for one in objects if one.get("kind") == "PersistentVolumeClaim"}
    pods: list[Plain] = []
    notes: list[str] = []
    left_out: dict[str, list[str]] = {}
    for one in objects:
        kind = str(one.get("kind", ""))
        if kind == "Pod":
            pods.append(one)
        elif kind in _TEMPLATES or (kind == "CronJob" and cron_jobs):
            pod, note = _pod_of(one, claims, claimed)
            pods.append(pod)
            notes.append(note)
        elif kind == "CronJob":
            why = "nothing here keeps its schedule; --run-cron-jobs runs its pod once, now"
            notes.append(f"CronJob {_name(one)} is left out: {why}")
        elif kind not in _SILENT:
            left_out.setdefault(kind or "object without a kind", []).append(_name(one))
    for kind, names in left_out.items():
        notes.append(f"{kind} {', '.join(names)} is left out: {_WHY_LEFT_OUT.get(kind, 'nothing here acts on it')}")
    return Expansion(pods=tuple(pods), notes=tuple(notes))


def _flat(documents: Iterable[object]) -> Iterable[Plain]:
    for one in documents:
        if not isinstance(one, dict):
            continue
        if one.get("kind") in ("List", "PodList"):
            yield from _flat(one.get("items") or ())
        else:
            yield one


def _pod_of(workload: Plain, claims: Path, claimed: set[str]) -> tuple[Plain, str]:
    kind, spec = str(workload["kind"]), _map(workload, "spec", workload)
    if kind == "CronJob":
        spec = _map(_map(spec, "jobTemplate", workload), "spec", workload)
    template = copy.deepcopy(_map(spec, "template", workload))
    pod_spec = _map(template, "spec", workload)
    namespace, _, name = _name(workload).rpartition("/")
    notes = [_NOT_DONE[kind]] if kind in _NOT_DONE else []
    if kind == "StatefulSet":
        name += "-0"
    for field in ("replicas", "parallelism", "completions"):
        if isinstance(spec.get(field), int) and spec[field] > 1:
            notes.insert(0, f"{field}: {spec[field]}")
    if kind in ("Job", "CronJob"):
        if pod_spec.get("restartPolicy") not in ("Never", "OnFailure"):
            raise NotRunnable(
                f"{kind} {_name(workload)}: spec.template.spec.restartPolicy: {pod_spec.get('restartPolicy')!r}; "
                "allowed: Never, OnFailure"
            )
        if pod_spec["restartPolicy"] == "Never":
            notes.append("another pod when this one fails")
        if "activeDeadlineSeconds" in spec:
            pod_spec.setdefault("activeDeadlineSeconds", spec["activeDeadlineSeconds"])
    # A pod without an API server has no service account.
    if pod_spec.pop("serviceAccountName", None) or pod_spec.pop("serviceAccount", None):
        notes.append("its service account")
    pod_spec.pop("serviceAccount", None)
    folders = _claims_as_folders(spec, pod_spec, claims / namespace, name, claimed)
    meta = template.get("metadata") if isinstance(template.get("metadata"), dict) else {}
    metadata = {"name": name, "namespace": namespace}
    metadata |= {field: meta[field] for field in ("labels", "annotations") if meta and meta.get(field)}
    said = f"{kind} {_name(workload)} runs as one pod, {namespace}/{name}"
    said += f"; its claims are folders below {claims / namespace}" if folders else ""
    said += f"; not done: {', '.join(notes)}" if notes else ""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec}, said


def _claims_as_folders(spec: Plain, pod_spec: Plain, folder: Path, pod: str, claimed: set[str]) -> bool:
    """Puts folders in the place of claims: of the workload's own, and of those in the same file."""
    volumes = [one for one in pod_spec.get("volumes") or () if isinstance(one, dict)]
    found = False
    for claim in spec.get("volumeClaimTemplates") or ():
        name = str(_map(claim, "metadata", claim).get("name", ""))
        volumes = [one for one in volumes if one.get("name") != name]
        volumes.append({"name": name, "hostPath": _folder(folder / f"{name}-{pod}")})
        found = True
    for volume in volumes:
        wanted = volume.get("persistentVolumeClaim")
        if isinstance(wanted, dict) and f"{folder.name}/{wanted.get('claimName')}" in claimed:
            del volume["persistentVolumeClaim"]
            volume["hostPath"] = _folder(folder / str(wanted["claimName"]))
            found = True
    if volumes:
        pod_spec["volumes"] = volumes
    return found


def _folder(path: Path) -> Plain:
    return {"path": str(path), "type": "DirectoryOrCreate"}


def _name(one: Plain) -> str:
    meta = one.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    return f"{meta.get('namespace') or 'default'}/{meta.get('name') or meta.get('generateName') or '?'}"


def _map(holder: Plain, field: str, workload: Plain) -> Plain:
    found = holder.get(field)
    if not isinstance(found, dict):
        raise NotRunnable(f"{workload.get('kind')} {_name(workload)}: {field}: want a map")
    return found
