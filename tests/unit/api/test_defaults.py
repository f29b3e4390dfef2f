"""Defaults of a pod, as the API server fills them in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from glasslet.api.codec import convert, to_plain
from glasslet.api.defaults.container import default_pull_policy
from glasslet.api.defaults.pod import default_pod
from glasslet.api.pod import Pod
from glasslet.config.documents import load_file

EVERYTHING = Path(__file__).parents[2] / "data/manifests/everything.yaml"


def defaulted(spec: dict[str, Any]) -> Any:
    return to_plain(default_pod(convert({"spec": spec}, Pod)))["spec"]


def container(**fields: Any) -> Any:
    return defaulted({"containers": [{"name": "a", "image": "a:1", **fields}]})["containers"][0]


def volume(**fields: Any) -> Any:
    return defaulted({"volumes": [{"name": "v", **fields}]})["volumes"][0]


def test_an_empty_spec_gets_the_pod_defaults() -> None:
    # behaviours.md §0: "termination.default_grace | 30 | s | API default"
    assert defaulted({}) == {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }


def test_a_negative_grace_period_is_the_shortest_one() -> None:
    assert defaulted({"terminationGracePeriodSeconds": -5})["terminationGracePeriodSeconds"] == 1


def test_a_zero_grace_period_stays() -> None:
    assert (
        default_pod(convert({"spec": {"terminationGracePeriodSeconds": 0}}, Pod)).spec.termination_grace_period_seconds
        == 0
    )


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("registry:5000/busybox", "Always"),
        ("registry:5000/busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("registry:5000/busybox:1", "IfNotPresent"),
        ("busybox@sha256:aa", "IfNotPresent"),
        ("busybox:latest@sha256:aa", "Always"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    # behaviours.md §8: "Default pull policy comes from the API (Always for :latest or no tag, else IfNotPresent)."
    assert default_pull_policy(image) == policy


def test_a_given_pull_policy_stays() -> None:
    assert container(image="a", imagePullPolicy="Never")["imagePullPolicy"] == "Never"


def test_a_container_gets_termination_message_settings() -> None:
    # behaviours.md §19: "mounted at terminationMessagePath (default /dev/termination-log)"
    made = container()
    assert (made["terminationMessagePath"], made["terminationMessagePolicy"]) == ("/dev/termination-log", "File")


def test_ports_are_tcp() -> None:
    assert container(ports=[{"containerPort": 80}])["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_on_the_host_network_container_ports_are_host_ports(kind: str) -> None:
    spec = {"hostNetwork": True, kind: [{"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 82}]}]}
    assert [port["hostPort"] for port in defaulted(spec)[kind][0]["ports"]] == [80, 82]


def test_requests_are_the_limits_where_not_given() -> None:
    made = container(resources={"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}})
    assert made["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_amounts_are_rounded_up_to_thousandths() -> None:
    assert container(resources={"limits": {"cpu": "1500u"}})["resources"]["limits"] == {"cpu": "2m"}


def test_probes_get_their_numbers() -> None:
    # behaviours.md §10: "API defaults: initialDelay 0, timeout 1 s, period 10 s, success 1, failure 3"
    made = container(livenessProbe={"grpc": {"port": 1}})["livenessProbe"]
    assert made == {
        "grpc": {"port": 1, "service": ""},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def test_http_actions_get_path_and_scheme() -> None:
    made = container(lifecycle={"preStop": {"httpGet": {"port": 1}}})["lifecycle"]["preStop"]["httpGet"]
    assert made == {"port": 1, "path": "/", "scheme": "HTTP"}


def test_field_references_are_of_version_1() -> None:
    made = container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])
    assert made["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"


def test_a_volume_without_source_is_an_empty_dir() -> None:
    assert volume() == {"name": "v", "emptyDir": {}}


def test_a_host_path_has_the_empty_type() -> None:
    assert volume(hostPath={"path": "/a"})["hostPath"] == {"path": "/a", "type": ""}


@pytest.mark.parametrize("kind", ["secret", "configMap", "downwardAPI", "projected"])
def test_files_of_volumes_get_mode_0644(kind: str) -> None:
    # behaviours.md §22: "Modes: defaultMode 0644; per item mode."
    assert volume(**{kind: {}})[kind]["defaultMode"] == 0o644


def test_projected_tokens_live_an_hour() -> None:
    # behaviours.md §22: "Tokens: default 3600 s"
    made = volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]})["projected"]["sources"][0]
    assert made["serviceAccountToken"]["expirationSeconds"] == 3600


def test_pod_requests_come_from_the_containers_and_then_from_the_limits() -> None:
    made = defaulted(
        {
            "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
            "containers": [{"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "500m"}}}],
            "initContainers": [
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                {"resources": {"requests": {"cpu": "3"}}},
            ],
        }
    )
    assert made["resources"]["requests"] == {"cpu": "4", "memory": "1Gi"}


def test_pod_limits_of_huge_pages_come_from_the_containers() -> None:
    made = defaulted(
        {
            "resources": {"requests": {"cpu": "1"}},
            "containers": [{"resources": {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}}],
        }
    )
    assert made["resources"]["limits"] == {"hugepages-2Mi": "4Mi"}


def test_a_complete_pod_is_returned_itself() -> None:
    once = default_pod(convert(load_file(str(EVERYTHING))[0].value, Pod))
    assert default_pod(once) is once


def test_what_is_complete_is_shared() -> None:
    pod = convert({"spec": {"affinity": {"nodeAffinity": {}}, "containers": [{"env": [{"name": "a"}]}]}}, Pod)
    made = default_pod(pod)
    assert made.spec.affinity is pod.spec.affinity
    assert made.spec.containers[0].env is pod.spec.containers[0].env
