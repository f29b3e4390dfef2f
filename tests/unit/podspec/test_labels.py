from __future__ import annotations

from typing import Any

import pytest

from glasslet.api.container import Container
from glasslet.podspec.labels import container_annotations, container_hash, container_labels, sandbox_labels
from tests.builders.podspec import pod_of

PREFIX = "io.kubernetes.container."


def test_the_hash_is_the_go_kubelets() -> None:
    # behaviours.md §2: "Check: name test_container, image foo/image:v1 gives 8e45cbd0."
    assert container_hash(Container(name="test_container", image="foo/image:v1")) == "8e45cbd0"


def test_the_hash_looks_at_name_and_image_only() -> None:
    plain = Container(name="a", image="b")
    assert container_hash(plain) == container_hash(Container(name="a", image="b", command=("sh",), working_dir="/"))
    assert container_hash(plain) != container_hash(Container(name="a", image="c"))
    assert container_hash(plain) != container_hash(Container(name="c", image="b"))


def test_html_characters_are_hashed_in_their_escaped_form() -> None:
    # behaviours.md §2: "JSON escapes <, > and & as \u003c, \u003e, \u0026."
    def by_hand(text: str) -> str:
        value = 0x811C9DC5
        for byte in f"([]uint8)[{' '.join(str(b) for b in text.encode())}]".encode():
            value = ((value ^ byte) * 0x01000193) % 2**32
        return f"{value:x}"

    text = '{"image":"a\\u003cb\\u003ec\\u0026d","name":"n"}'
    assert container_hash(Container(name="n", image="a<b>c&d")) == by_hand(text)


def test_a_sandbox_has_the_pods_labels_and_identity() -> None:
    # behaviours.md §30: "Sandbox labels: pod labels plus io.kubernetes.pod.name, ...namespace, ...uid"
    pod = pod_of(meta={"labels": {"app": "web", "io.kubernetes.pod.name": "liar"}})
    assert sandbox_labels(pod) == {
        "app": "web",
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": "uid-1",
    }


def test_a_container_has_identity_and_name_but_no_labels_of_the_pod() -> None:
    # behaviours.md §30: "Container labels: those three plus io.kubernetes.container.name."
    pod = pod_of(meta={"labels": {"app": "web"}})
    assert container_labels(pod, pod.spec.containers[0]) == {
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": "uid-1",
        "io.kubernetes.container.name": "main",
    }


def annotations_of(container: dict[str, Any] | None = None, *, meta: Any = None, **spec: Any) -> dict[str, str]:
    pod = pod_of(container or {}, meta=meta, **spec)
    return container_annotations(pod, pod.spec.containers[0], 3)


def test_annotations_always_hold_hash_restarts_and_termination_message() -> None:
    # behaviours.md §30: "Annotations: io.kubernetes.container.hash, io.kubernetes.container.restartCount,
    # io.kubernetes.container.terminationMessagePath, io.kubernetes.container.terminationMessagePolicy"
    # behaviours.md §30: "Numbers are decimal text."
    found = annotations_of({"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"})
    assert found == {
        f"{PREFIX}hash": container_hash(Container(name="main", image="busybox")),
        f"{PREFIX}restartCount": "3",
        f"{PREFIX}terminationMessagePath": "/dev/termination-log",
        f"{PREFIX}terminationMessagePolicy": "File",
    }


@pytest.mark.parametrize(
    ("container", "spec", "meta", "name", "value"),
    [
        (
            {"ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}]},
            {},
            {},
            f"{PREFIX}ports",
            '[{"name":"http","containerPort":80,"protocol":"TCP"}]',
        ),
        (
            {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "x"]}}}},
            {},
            {},
            f"{PREFIX}preStopHandler",
            '{"exec":{"command":["sh","-c","x"]}}',
        ),
        # behaviours.md §30: "io.kubernetes.container.preStopHandler (JSON, if any),
        # io.kubernetes.pod.terminationGracePeriod, io.kubernetes.pod.deletionGracePeriod (if deleting)"
        ({}, {"terminationGracePeriodSeconds": 0}, {}, "io.kubernetes.pod.terminationGracePeriod", "0"),
        ({}, {}, {"deletionGracePeriodSeconds": 5}, "io.kubernetes.pod.deletionGracePeriod", "5"),
    ],
)
def test_annotations_hold_what_stopping_needs(container: Any, spec: Any, meta: Any, name: str, value: str) -> None:
    assert annotations_of(container, meta=meta, **spec)[name] == value
