"""The objects in the files of `glasslet up`, and one finding for each document that nothing here acts on. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from glasslet.api.formats import dns_label_problems, dns_subdomain_problems
from glasslet.config.document import Document, DocumentError
from glasslet.config.documents import load_documents

Plain = dict[str, Any]

WORKLOADS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job", "CronJob")
DATA = ("ConfigMap", "Secret", "PersistentVolumeClaim", "PersistentVolume")
KINDS = ("Pod", *WORKLOADS, *DATA, "Service", "Namespace")
_CLUSTER_WIDE = ("PersistentVolume", "Namespace")
_LISTS = ("List", *(f"{kind}List" for kind in KINDS))
_LEFT_OUT = {
    "Ingress": "nothing here routes HTTP by host name; a Service of type NodePort is reachable from outside",
    "ServiceAccount": "there is no API server to ask for its tokens",
    "StorageClass": "claims are folders on this machine",
    "HorizontalPodAutoscaler": "replicas stay as written",
    "PodDisruptionBudget": "nothing here drains pods",
    "NetworkPolicy": "the pod network has no policies: all pods reach each other",
}


class BoxObject(Struct, frozen=True, kw_only=True):
    """One object. `namespace`: "" for kinds without one; `place`: where it is written (`shop.yaml:12`)."""

    kind: str
    namespace: str
    name: str
    body: Plain
    place: str = ""

    @property
    def key(self) -> str:
        """Identifies it on this machine: `Deployment/shop/web`."""
        return "/".join(filter(None, (self.kind, self.namespace, self.name)))

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class DocumentFinding(Struct, frozen=True):
    """A document, or a part of it, that does not do here what is written. `broken`: it is wrong; otherwise one machine
    does not do it."""

    place: str
    text: str
    broken: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


class Documents(Struct, frozen=True):
    """What was read."""

    objects: tuple[BoxObject, ...] = ()
    findings: tuple[DocumentFinding, ...] = ()


def objects_of(data: bytes, origin: str) -> Documents:
    """The objects of a file of YAML or JSON documents. What is wrong is a finding; nothing is raised."""
    objects: list[BoxObject] = []
    findings: list[DocumentFinding] = []
    try:
        documents = load_documents(data, origin=origin)
    except DocumentError as error:
        return Documents(findings=(DocumentFinding("", str(error), broken=True),))
    for document in documents:
        for value, path in _flat(document.value, ""):
            found = _object(document, value, path)
            if isinstance(found, BoxObject):
                objects.append(found)
            else:
                findings.append(found)
    return Documents(tuple(objects), tuple(findings))


def all_of(files: Iterable[Documents]) -> Documents:
    """The objects of all files. Of an object that is written twice the last counts, and a finding says so."""
    read = list(files)
    objects = [one for file in read for one in file.objects]
    last = {one.key: one for one in objects}
    doubles = (
        DocumentFinding(one.place, f"{one} is written again at {last[one.key].place}, and that counts", broken=True)
        for one in objects
        if last[one.key] is not one
    )
    return Documents(tuple(last.values()), (*(finding for file in read for finding in file.findings), *doubles))


def _flat(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """The objects of a document, with their paths in it: itself, or the items of a list."""
    if not isinstance(value, dict) or value.get("kind") not in _LISTS:
        yield value, path
        return
    items = value.get("items")
    for index, item in enumerate(items if isinstance(items, list) else ()):
        yield from _flat(item, f"{path}.items[{index}]".lstrip("."))


def _object(document: Document, value: Any, path: str) -> BoxObject | DocumentFinding:
    def wrong(text: str, field: str = "", *, broken: bool = True) -> DocumentFinding:
        line = document.line_of(f"{path}.{field}".strip("."))
        return DocumentFinding(f"{document.origin}:{line}", text, broken)

    if not isinstance(value, dict):
        return wrong("want an object with apiVersion, kind and metadata")
    kind, meta = value.get("kind"), value.get("metadata")
    if not isinstance(kind, str) or not kind:
        return wrong(f"kind: missing; allowed: {', '.join(KINDS)}")
    meta = meta if isinstance(meta, dict) else {}
    name, namespace = meta.get("name"), meta.get("namespace") or "default"
    if kind not in KINDS:
        return _unknown(kind, name, wrong)
    if not isinstance(name, str) or not name:
        return wrong(f"{kind}: metadata.name: Required value", "metadata")
    for problem in dns_subdomain_problems(name):
        return wrong(f'{kind}: metadata.name: Invalid value: "{name}": {problem}', "metadata.name")
    if not isinstance(namespace, str):
        return wrong(f"{kind} {name}: metadata.namespace: want a string", "metadata.namespace")
    for problem in dns_label_problems(namespace):
        text = f'{kind} {name}: metadata.namespace: Invalid value: "{namespace}": {problem}'
        return wrong(text, "metadata.namespace")
    place = f"{document.origin}:{document.line_of(path)}"
    return BoxObject(
        kind=kind, namespace="" if kind in _CLUSTER_WIDE else namespace, name=name, body=value, place=place
    )


def _unknown(kind: str, name: object, wrong: Any) -> DocumentFinding:
    shown = f"{kind} {name}" if isinstance(name, str) else kind
    if kind in _LEFT_OUT:
        finding: DocumentFinding = wrong(f"{shown} is left out: {_LEFT_OUT[kind]}", broken=False)
        return finding
    by_lower = {known.lower(): known for known in KINDS}
    near = difflib.get_close_matches(kind.lower(), by_lower, n=1, cutoff=0.8)
    if near:
        finding = wrong(f"kind: {kind}: there is no such kind; did you mean {by_lower[near[0]]}?", "kind")
    else:
        finding = wrong(f"{shown} is left out: nothing on one machine acts on it", broken=False)
    return finding
