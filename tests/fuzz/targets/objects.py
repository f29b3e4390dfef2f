"""Objects of the API server, quantities, times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from glasslet.api.codec import DecodeError, decode, encode
from glasslet.api.configdata import ConfigMap, Secret, Service
from glasslet.api.defaults.pod import default_pod
from glasslet.api.lease import Lease
from glasslet.api.node import Node
from glasslet.api.persistent_volume import PersistentVolume, PersistentVolumeClaim
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.api.times import parse_rfc3339
from glasslet.api.validation.pod import pod_errors
from glasslet.identity.signing_objects import CertificateSigningRequest
from glasslet.kubeapi.answers import error_for
from glasslet.kubeapi.client import _watch_event
from glasslet.kubeapi.decoding import UndecodableObject, decode_object
from glasslet.kubeapi.errors import APIError
from glasslet.podspec.container import container_spec
from glasslet.podspec.demand import pod_demand
from glasslet.podspec.errors import ConfigError
from glasslet.podspec.sandbox import sandbox_spec
from glasslet.runtime.images.reference import InvalidImageName, parse_image_name
from glasslet.server.access.webhook_objects import SubjectAccessReview, TokenReview
from tests.builders.podspec import container_request, sandbox_request
from tests.fuzz.engine import Target
from tests.fuzz.mutation import NUMBERS
from tests.fuzz.targets.making import bytes_target, tree_target

DATA = Path(__file__).parents[2] / "data"
META = {
    "name": "one",
    "namespace": "default",
    "uid": "u-1",
    "resourceVersion": "7",
    "generation": 2,
    "creationTimestamp": "2026-01-02T03:04:05Z",
    "labels": {"a": "b"},
    "annotations": {"c": "d"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "x", "controller": True}],
}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
    "reason": "R",
    "message": "m",
}
OBJECTS: dict[str, tuple[type, dict[str, Any]]] = {
    "config map": (ConfigMap, {"data": {"a": "b"}, "binaryData": {"c": "AAEC"}, "immutable": True}),
    "secret": (Secret, {"data": {"a": "aGk="}, "type": "Opaque"}),
    "service": (
        Service,
        {
            "spec": {
                "clusterIP": "10.0.0.1",
                "ports": [{"name": "p", "port": 80, "protocol": "TCP", "targetPort": "web"}],
            }
        },
    ),
    "lease": (
        Lease,
        {"spec": {"holderIdentity": "n", "leaseDurationSeconds": 40, "renewTime": "2026-01-02T03:04:05.123456Z"}},
    ),
    "node": (
        Node,
        {
            "spec": {"podCIDR": "10.1.0.0/24", "taints": [{"key": "a", "effect": "NoSchedule"}]},
            "status": {
                "capacity": {"cpu": "4", "memory": "8Gi"},
                "allocatable": {"cpu": "3900m"},
                "conditions": [CONDITION],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}],
                "images": [{"names": ["a:b"], "sizeBytes": 5}],
                "volumesAttached": [{"name": "v", "devicePath": ""}],
            },
        },
    ),
    "persistent volume": (
        PersistentVolume,
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "iscsi": {"targetPortal": "1.2.3.4:3260", "iqn": "iqn.2026-01.a:b", "lun": 0},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
                    }
                },
            }
        },
    ),
    "claim": (
        PersistentVolumeClaim,
        {"spec": {"volumeName": "pv", "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Bound"}},
    ),
    "token review": (
        TokenReview,
        {"status": {"authenticated": True, "user": {"username": "a", "groups": ["b"], "extra": {"k": ["v"]}}}},
    ),
    "access review": (SubjectAccessReview, {"status": {"allowed": True, "reason": "r"}}),
    "certificate request": (
        CertificateSigningRequest,
        {
            "spec": {"request": "AAEC", "signerName": "s", "usages": ["client auth"]},
            "status": {"certificate": "AAEC", "conditions": [CONDITION]},
        },
    ),
}


def targets() -> list[Target]:
    """All kinds; a pod also goes through defaults, validation and the specifications for the runtime."""
    everything = yaml.safe_load((DATA / "manifests" / "everything.yaml").read_text())
    small = {
        "metadata": META,
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "busybox:1.36",
                    "command": ["sh", "-c", "$(A)"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(A)"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
                    "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 3},
                    "ports": [{"containerPort": 80, "hostPort": 8080}],
                }
            ],
            "terminationGracePeriodSeconds": 30,
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
        },
        "status": {"phase": "Running", "conditions": [CONDITION], "startTime": "2026-01-02T03:04:05Z"},
    }
    made = [tree_target("pod", _pod, [everything, small])]
    for name, (kind, body) in OBJECTS.items():
        made.append(tree_target(name, _decoder(kind), [{"metadata": META, **body}]))
    status = {
        "kind": "Status",
        "code": 409,
        "reason": "AlreadyExists",
        "message": "m",
        "details": {"retryAfterSeconds": 3},
    }
    made.append(
        tree_target("API error", lambda data: [error_for("GET", code, data, "7") for code in (409, 429, 500)], [status])
    )
    event = {"type": "MODIFIED", "object": {"kind": "Pod", "apiVersion": "v1", **small}}
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
    made.append(tree_target("watch event", _event, [event, gone | {"type": "BOOKMARK"}], errors=(APIError,)))
    quantities = [b"1", b"100m", b"1.5Gi", b"1e3", b"12E", b"-0.25k", b"1n", *NUMBERS]
    made.append(
        bytes_target(
            "quantity", _quantity, quantities[:7], errors=(ValueError,), words=(b"Ki", b"Ei", b"E", b"e", b"m", b".")
        )
    )
    times = [b"2026-01-02T03:04:05Z", b"2026-01-02T03:04:05.123456789+02:00"]
    made.append(bytes_target("time", lambda data: parse_rfc3339(data.decode()), times, errors=(ValueError,)))
    images = [b"busybox", b"registry.example:5000/a/b:tag", b"a/b@sha256:" + b"0" * 64]
    made.append(
        bytes_target(
            "image name",
            lambda data: parse_image_name(data.decode()),
            images,
            errors=(InvalidImageName, UnicodeDecodeError),
        )
    )
    return made


def _pod(data: bytes) -> object:
    pod = decode_object(data, Pod)
    if isinstance(pod, UndecodableObject):
        assert len(str(pod)) < 4000
        return pod
    encode(pod)
    defaulted = default_pod(pod)
    pod_errors(defaulted)
    pod_demand(defaulted)
    try:
        if defaulted.spec.containers:
            sandbox_spec(sandbox_request(defaulted))
            container_spec(container_request(defaulted))
    except ConfigError as error:
        return error
    return pod


def _decoder(kind: type) -> Any:
    def run(data: bytes) -> object:
        found = decode_object(data, kind)
        if not isinstance(found, UndecodableObject):
            encode(found)
        try:
            decode(data, kind)
        except DecodeError as error:
            return str(error)
        return found

    return run


def _event(data: bytes) -> object:
    return _watch_event("GET", data, Pod)


def _quantity(data: bytes) -> object:
    found = Quantity.parse(data.decode())
    again = Quantity.parse(str(found))
    return found.value, found.milli_value, found.rounded_up_to_milli(), again
