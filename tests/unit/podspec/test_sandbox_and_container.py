from __future__ import annotations

from typing import Any

import pytest

from glasslet.exchange.volume import MountedVolume
from glasslet.podspec.container import container_spec
from glasslet.podspec.errors import ConfigError
from glasslet.podspec.sandbox import sandbox_spec
from glasslet.runtime.model import Image
from glasslet.runtime.spec import PortMapping
from tests.builders.podspec import container_request, node_facts, pod_of, sandbox_request


def test_a_sandbox_is_named_after_its_pod() -> None:
    found = sandbox_spec(
        sandbox_request(pod_of(meta={"annotations": {"a": "b"}}), attempt=2, cgroup_parent="/kubepods/x")
    )
    assert (found.name, found.namespace, found.uid, found.attempt) == ("web", "default", "uid-1", 2)
    # behaviours.md §30: "Sandbox annotations: pod annotations."
    assert (found.hostname, found.cgroup_parent, found.annotations) == ("web", "/kubepods/x", {"a": "b"})
    # behaviours.md §18: "Path /var/log/pods/<namespace>_<pod>_<uid>/<container>/<restart count>.log"
    assert found.log_directory == "/var/log/pods/default_web_uid-1"


def test_a_sandbox_on_the_host_network_has_no_host_name() -> None:
    # behaviours.md §19: "Given to the runtime only for pod-network sandboxes."
    # behaviours.md §30: "hostname (empty on host network)"
    assert sandbox_spec(sandbox_request(pod_of(hostNetwork=True))).hostname == ""


@pytest.mark.parametrize(
    ("name", "dotted"),
    [
        # behaviours.md §2: "sysctl names in the sandbox config have / turned to dots"
        ("net.core.somaxconn", "net.core.somaxconn"),
        ("net/core/somaxconn", "net.core.somaxconn"),
        ("net/ipv4/conf/eth0.100/rp_filter", "net.ipv4.conf.eth0/100.rp_filter"),
        ("net.ipv4.conf.eth0/100.rp_filter", "net.ipv4.conf.eth0/100.rp_filter"),
    ],
)
def test_sysctls_are_named_with_dots(name: str, dotted: str) -> None:
    pod = pod_of(securityContext={"sysctls": [{"name": name, "value": "1"}]})
    assert sandbox_spec(sandbox_request(pod)).sysctls == {dotted: "1"}


def ports(*given: dict[str, Any], **spec: Any) -> tuple[PortMapping, ...]:
    return sandbox_spec(sandbox_request(pod_of({"ports": list(given)}, **spec))).port_mappings


def test_all_ports_of_regular_containers_are_listed_with_and_without_host_port() -> None:
    # behaviours.md §30: "port_mappings (all ports of regular containers, host_port 0 where unset)"
    init = [{"name": "i", "image": "x", "ports": [{"containerPort": 1, "protocol": "TCP"}]}]
    found = ports(
        {"containerPort": 80, "protocol": "TCP"},
        {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "192.0.2.1"},
        initContainers=init,
    )
    assert found == (
        PortMapping(protocol="TCP", container_port=80),
        PortMapping(protocol="UDP", container_port=53, host_port=53, host_ip="192.0.2.1"),
    )


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ({"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}, 1),
        ({"containerPort": 1, "protocol": "TCP"}, {"containerPort": 1, "protocol": "TCP"}, 1),
        ({"containerPort": 1, "protocol": "TCP"}, {"containerPort": 1, "protocol": "UDP"}, 2),
        ({"containerPort": 1, "hostIP": "0.0.0.0"}, {"containerPort": 1, "hostIP": "::"}, 2),
    ],
)
def test_a_port_given_twice_counts_once(first: dict[str, Any], second: dict[str, Any], count: int) -> None:
    assert len(ports(first, second)) == count


def test_a_container_carries_what_its_manifest_says() -> None:
    container = {
        "image": "busybox:1.36",
        "workingDir": "/srv",
        "stdin": True,
        "stdinOnce": True,
        "tty": True,
    }
    found = container_spec(container_request(pod_of(container), attempt=4, image=Image(id="sha256:feed")))
    assert (found.name, found.attempt, found.log_path) == ("main", 4, "main/4.log")
    # behaviours.md §2: "CRI image in ContainerConfig: image = resolved image id or ref, user_specified_image = image as
    # in the spec."
    assert (found.image, found.user_specified_image) == ("sha256:feed", "busybox:1.36")
    assert (found.working_dir, found.stdin, found.stdin_once, found.tty) == ("/srv", True, True, True)


def test_the_same_request_gives_the_same_specification() -> None:
    asked = container_request(pod_of({"env": [{"name": "A", "value": "1"}]}))
    assert container_spec(asked) == container_spec(asked)


@pytest.mark.parametrize("name", ["..", "a/b", ""])
def test_a_container_name_that_is_no_file_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be a file name"):
        container_spec(container_request(pod_of({"name": name})))


def test_a_pod_uid_that_is_no_file_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be a file name"):
        sandbox_spec(sandbox_request(pod_of(meta={"uid": "a/../../b"})))


def test_values_of_the_environment_never_reach_a_message() -> None:
    env = [{"name": "PASSWORD", "value": "/s3cret"}]
    mount = {"name": "v", "mountPath": "/v", "subPathExpr": "$(PASSWORD)"}
    pod = pod_of({"env": env, "volumeMounts": [mount]})
    volumes = {"v": MountedVolume(name="v", path="/v")}
    with pytest.raises(ConfigError) as caught:
        container_spec(container_request(pod, node=node_facts(), volumes=volumes))
    assert caught.value.message == "error SubPath `$(PASSWORD)` must not be an absolute path"


def test_the_stop_signal_is_handed_on_and_is_the_runtimes_matter_otherwise() -> None:
    # behaviours.md §4: "Stop signal: image/runtime default (SIGTERM) unless lifecycle.stopSignal (gate
    # ContainerStopSignals, alpha, off)"
    asked = container_spec(container_request(pod_of({"lifecycle": {"stopSignal": "SIGUSR1"}})))
    silent = container_spec(container_request(pod_of({"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}})))
    assert (asked.stop_signal, silent.stop_signal) == ("SIGUSR1", "")
