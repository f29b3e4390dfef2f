"""A credential provider plugin that gets service account tokens from a real API server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_image_pull_secrets import pod_of_image
from tests.fakes.agent import Agent
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, is_ready
from tests.fakes.registry import Registry

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

PLUGIN = """#!/bin/sh
cat > {folder}/request.json
echo '{{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
 "cacheKeyType": "Registry", "auth": {{"{host}": {{"username": "ann", "password": "hunter2"}}}}}}'
"""
AUDIENCE = "registry-of-tests"


@pytest.fixture
def registry(tmp_path: Path, containerd: PrivateContainerd) -> Iterator[Registry]:
    with Registry(tmp_path) as made:
        made.protect("team/", ann="hunter2")
        yield made
        containerd.remove_images(made.host)


@pytest.fixture
def agent(
    tmp_path: Path, controlplane: ControlPlane, containerd: PrivateContainerd, registry: Registry
) -> Iterator[Agent]:
    """Of a cluster that lets its nodes ask for tokens of that audience."""
    bin_dir, config = tmp_path / "bin", tmp_path / "providers.yaml"
    bin_dir.mkdir()
    (bin_dir / "login").write_text(PLUGIN.format(folder=tmp_path, host=registry.host))
    (bin_dir / "login").chmod(0o755)
    provider = {
        "name": "login",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "matchImages": [registry.host],
        "defaultCacheDuration": "1h",
        "tokenAttributes": {
            "serviceAccountTokenAudience": AUDIENCE,
            "cacheType": "ServiceAccount",
            "requireServiceAccount": True,
            "requiredServiceAccountAnnotationKeys": ["team"],
        },
    }
    kind = {"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig"}
    config.write_text(yaml.safe_dump({**kind, "providers": [provider]}))
    controlplane.apply(*permissions())
    made = cluster_member(controlplane, containerd, tmp_path / "agent")
    made.flags += (f"--image-credential-provider-config={config}", f"--image-credential-provider-bin-dir={bin_dir}")
    with joined(controlplane, containerd, made):
        yield made
    for body in permissions():
        controlplane.kubectl("delete", body["kind"], body["metadata"]["name"])


def permissions() -> list[dict[str, Any]]:
    """What a cluster gives its nodes for this."""
    group = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "pull-tokens"}}
    rules = [
        {"verbs": ["request-serviceaccounts-token-audience"], "apiGroups": [""], "resources": [AUDIENCE]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["serviceaccounts"]},
    ]
    nodes = {"kind": "Group", "name": "system:nodes", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "pull-tokens", "apiGroup": "rbac.authorization.k8s.io"}
    return [
        {**group, "kind": "ClusterRole", "rules": rules},
        {**group, "kind": "ClusterRoleBinding", "subjects": [nodes], "roleRef": role},
    ]


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    content: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return content


def test_the_plugin_gets_a_token_of_the_pod_for_its_audience(
    controlplane: ControlPlane, agent: Agent, registry: Registry, tmp_path: Path
) -> None:
    registry.add("team/app", "1", marker="team app")
    account = {"kind": "ServiceAccount", "apiVersion": "v1"}
    controlplane.apply({**account, "metadata": {"name": "puller", "annotations": {"team": "blue", "other": "x"}}})
    try:
        body = pod_of_image("tokens", registry.name("team/app", "1"))
        body["spec"]["serviceAccountName"] = "puller"
        controlplane.apply(body)
        pod = controlplane.wait_for("tokens", is_ready, seconds=120)
    finally:
        controlplane.kubectl("delete", "serviceaccount", "puller")
    assert pod is not None
    request = json.loads((tmp_path / "request.json").read_text())
    # behaviours.md §25: "tokenAttributes (...): audience, ... required/optional annotation keys."
    assert request["serviceAccountAnnotations"] == {"team": "blue"}
    said = claims(request["serviceAccountToken"])
    assert said["aud"] == [AUDIENCE]
    assert said["kubernetes.io"]["serviceaccount"]["name"] == "puller"
    assert said["kubernetes.io"]["pod"]["uid"] == pod["metadata"]["uid"]
    assert registry.pulls("team/app") == ["ann"]
    token = request["serviceAccountToken"].encode()
    assert [path for path, content in agent.own_files() if token in content] == []
