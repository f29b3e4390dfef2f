"""imagePullSecrets from a real API server, used on a registry with passwords."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

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


def test_the_first_secret_that_opens_the_registry_counts(
    controlplane: ControlPlane, cluster_agent: Agent, registry: Registry
) -> None:
    registry.add("team/app", "1", marker="team app")
    image = registry.name("team/app", "1")
    for name, user, password in (("old", "ann", "wrong"), ("new", "bob", "swordfish")):
        auths = {"auths": {registry.host: {"username": user, "password": password}}}
        controlplane.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name},
                "type": "kubernetes.io/dockerconfigjson",
                "stringData": {".dockerconfigjson": json.dumps(auths)},
            }
        )
    try:
        body = api_pod("private", imagePullSecrets=[{"name": name} for name in ("gone", "old", "new")])
        body["spec"]["containers"][0]["image"] = image
        controlplane.apply(body)
        controlplane.wait_for("private", is_ready, seconds=120)
    finally:
        controlplane.kubectl("delete", "secret", "old", "new")
    # behaviours.md §8: "Every matching credential is tried"
    assert registry.pulls("team/app") == ["bob"]
    told = dict(controlplane.events("private"))
    # behaviours.md §8: "Unreadable pull secrets: event FailedToRetrieveImagePullSecret, pull goes on."
    assert told["FailedToRetrieveImagePullSecret"].startswith("Unable to retrieve some image pull secrets (gone);")
    assert told["Pulled"].startswith(f'Successfully pulled image "{image}" in ')
    assert b"swordfish" not in cluster_agent.log.read_bytes()
