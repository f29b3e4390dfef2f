"""imagePullSecrets from a real API server, used on a registry with passwords."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import api_pod
from tests.fakes.agent import Agent
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, is_ready
from tests.fakes.registry import Registry

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]


@pytest.fixture
def registry(tmp_path: Path, containerd: PrivateContainerd) -> Iterator[Registry]:
    with Registry(tmp_path) as made:
        made.protect("team/", ann="hunter2", bob="swordfish")
        yield made
        containerd.remove_images(made.host)


def pull_secret(registry: Registry, name: str, user: str, password: str) -> dict[str, Any]:
    auths = {"auths": {registry.host: {"username": user, "password": password}}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": json.dumps(auths)},
    }


def pod_of_image(name: str, image: str, *secrets: str) -> dict[str, Any]:
    body = api_pod(name, imagePullSecrets=[{"name": secret} for secret in secrets])
    body["spec"]["containers"][0]["image"] = image
    return body


def waits_for(reason: str) -> Callable[[dict[str, Any] | None], bool]:
    def so(pod: dict[str, Any] | None) -> bool:
        statuses = (pod or {}).get("status", {}).get("containerStatuses", [])
        return any(status["state"].get("waiting", {}).get("reason") == reason for status in statuses)

    return so


def test_the_first_secret_that_opens_the_registry_counts(
    controlplane: ControlPlane, cluster_agent: Agent, registry: Registry
) -> None:
    registry.add("team/app", "1", marker="team app")
    image = registry.name("team/app", "1")
    controlplane.apply(pull_secret(registry, "old", "ann", "wrong"), pull_secret(registry, "new", "bob", "swordfish"))
    try:
        controlplane.apply(pod_of_image("private", image, "gone", "old", "new"))
        controlplane.wait_for("private", is_ready, seconds=120)
    finally:
        controlplane.kubectl("delete", "secret", "old", "new")
    # behaviours.md §8: "Every matching credential is tried"
    assert registry.pulls("team/app") == ["bob"]
    # behaviours.md §8: "Unreadable pull secrets: event FailedToRetrieveImagePullSecret, pull goes on."
    words = "Unable to retrieve some image pull secrets (gone);"
    assert controlplane.wait_for_event("private", "FailedToRetrieveImagePullSecret", words).startswith(words)
    told = controlplane.wait_for_event("private", "Pulled")
    assert told.startswith(f'Successfully pulled image "{image}" in ')
    assert b"swordfish" not in cluster_agent.log.read_bytes()


def test_an_image_that_one_pod_may_use_is_not_for_one_without_its_secret(
    controlplane: ControlPlane, containerd: PrivateContainerd, registry: Registry, tmp_path: Path
) -> None:
    registry.add("team/tenant", "1", marker="of one tenant")
    image = registry.name("team/tenant", "1")
    controlplane.apply(pull_secret(registry, "tenant", "ann", "hunter2"))
    agent = cluster_member(
        controlplane, containerd, tmp_path / "agent", featureGates={"KubeletEnsureSecretPulledImages": True}
    )
    with joined(controlplane, containerd, agent):
        controlplane.apply(pod_of_image("tenant", image, "tenant"))
        controlplane.wait_for("tenant", is_ready, seconds=120)
        controlplane.apply(pod_of_image("again", image, "tenant"), pod_of_image("stranger", image))
        controlplane.wait_for("again", is_ready, seconds=120)
        controlplane.wait_for("stranger", waits_for("ImagePullBackOff"), seconds=120)
        told = controlplane.wait_for_event("again", "Pulled")
        assert told == f'Container image "{image}" already present on machine and can be accessed by the pod'
        assert registry.pulls("team/tenant") == ["ann"]
        # Not what says that a pull is under way: that comes and goes.
        kept = b"".join(path.read_bytes() for path in Path(agent.root, "image_manager", "pulled").glob("sha256-*"))
        assert b'"name":"tenant"' in kept
        assert b"hunter2" not in kept
    controlplane.kubectl("delete", "secret", "tenant")
