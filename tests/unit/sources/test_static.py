"""What a manifest becomes. Rules: behaviours.md §13."""

from __future__ import annotations

import re
from typing import Any

import pytest

from glasslet.api.meta import ObjectMeta
from glasslet.api.pod import Pod
from glasslet.api.scheduling import Toleration
from glasslet.sources.manifest import ManifestReader, Problem
from glasslet.sources.names import FILE, HASH_ANNOTATION, HTTP
from glasslet.sources.static import Origin, static_pod
from tests.builders.manifests import NODE, READER, document, manifest

WEB = Origin(FILE, "/manifests/web.yaml")
NO_EXECUTE = Toleration(operator="Exists", effect="NoExecute")


def pod(value: Any = None, origin: Origin = WEB, reader: ManifestReader = READER) -> Pod:
    made = reader.pod(document(value or manifest()), origin)
    assert not isinstance(made, Problem), made
    return made


def test_name_ends_in_the_lower_case_node_name() -> None:
    # behaviours.md §13: "Name `<name>-<lower-case node name>`"
    made = static_pod(Pod(), Pod(metadata=ObjectMeta(name="web")), WEB, "Node-1")
    assert made.metadata.name == "web-node-1"


def test_namespace_is_default_if_empty() -> None:
    # behaviours.md §13: "namespace default if empty"
    assert pod().metadata.namespace == "default"


def test_a_given_namespace_stays() -> None:
    value = manifest()
    value["metadata"]["namespace"] = "kube-system"
    assert pod(value).metadata.namespace == "kube-system"


def test_node_name_is_set_and_phase_pending() -> None:
    # behaviours.md §13: "spec.nodeName set, phase Pending"
    made = pod()
    assert (made.spec.node_name, made.status.phase) == (NODE, "Pending")


def test_a_status_in_the_manifest_does_not_count() -> None:
    made = pod({**manifest(), "status": {"phase": "Running", "containerStatuses": [{"broken": True}]}})
    assert (made.spec, made.status) == (pod().spec, pod().status)


def test_file_pods_tolerate_no_execute() -> None:
    # behaviours.md §13: "file source only: toleration {operator Exists, effect NoExecute} added"
    assert pod().spec.tolerations == (NO_EXECUTE,)
    assert pod(origin=Origin(HTTP, "http://a/b")).spec.tolerations == ()


def test_a_like_toleration_loses_its_time_limit() -> None:
    limited = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    assert pod(manifest(tolerations=[limited])).spec.tolerations == (NO_EXECUTE,)


def test_uid_is_32_hexadecimal_digits_and_the_hash_annotation() -> None:
    # behaviours.md §13: "UID if absent: MD5 hex (32 digits)"
    meta = pod().metadata
    assert re.fullmatch("[0-9a-f]{32}", meta.uid)
    assert meta.annotations[HASH_ANNOTATION] == meta.uid


def test_uid_is_the_same_in_every_release() -> None:
    """A change here restarts every static pod at the next upgrade."""
    assert pod().metadata.uid == "084e4ce13d0ed257a3325896609c7177"


def test_uid_does_not_depend_on_how_the_manifest_is_written() -> None:
    value = manifest()
    shuffled = {"spec": value["spec"], "metadata": value["metadata"], "kind": "Pod", "apiVersion": "v1"}
    assert pod(shuffled).metadata.uid == pod(value).metadata.uid


@pytest.mark.parametrize(
    "other",
    [
        pod(manifest(hostNetwork=True)),
        pod(origin=Origin(FILE, "/manifests/other.yaml")),
        pod(reader=ManifestReader(node_name="node-2")),
    ],
    ids=["content", "path", "node"],
)
def test_uid_changes_with(other: Pod) -> None:
    # behaviours.md §13: "a stable 32-hex value that changes with the content, node and path"
    assert other.metadata.uid != pod().metadata.uid


def test_uid_of_a_url_pod_does_not_depend_on_the_node() -> None:
    # behaviours.md §13: "`host:<node>` and `file:<path>` (files) or only `url:<url>` (URL)"
    origin = Origin(HTTP, "http://a/b")
    other = ManifestReader(node_name="node-2")
    assert pod(origin=origin).metadata.uid == pod(origin=origin, reader=other).metadata.uid


def test_a_given_uid_stays_and_is_the_hash() -> None:
    # behaviours.md §13: "kubernetes.io/config.hash = the UID (also when the manifest gives one)"
    value = manifest()
    value["metadata"]["uid"] = "my-uid"
    meta = pod(value).metadata
    assert (meta.uid, meta.annotations[HASH_ANNOTATION]) == ("my-uid", "my-uid")


def test_api_defaults_are_applied() -> None:
    # behaviours.md §13: "API defaults are applied and the pod is validated like a created one."
    assert pod().spec.dns_policy == "ClusterFirst"
    assert pod().spec.containers[0].image_pull_policy == "IfNotPresent"
