"""Pulls from a registry with passwords, by a whole agent on a real containerd: policies, digests, plugins."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.agent import FOR_EVER, NODE, Agent
from tests.fakes.containerd import PrivateContainerd, unmount_below
from tests.fakes.registry import Registry

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

PLUGIN = """#!/bin/sh
cat >> {folder}/requests
echo >> {folder}/requests
echo '{{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
 "cacheKeyType": "Registry", "auth": {{"{host}": {{"username": "ann", "password": "'$(cat {folder}/password)'"}}}}}}'
"""


@pytest.fixture
def registry(tmp_path: Path, containerd: PrivateContainerd) -> Iterator[Registry]:
    with Registry(tmp_path) as made:
        yield made
        containerd.remove_images(made.host)


@pytest.fixture
def agent(tmp_path: Path, containerd: PrivateContainerd, registry: Registry) -> Iterator[Agent]:
    """One with a credential plugin for the registry that gives the password of the file `password`."""
    made = Agent(tmp_path / "agent", containerd)
    bin_dir, config = tmp_path / "bin", tmp_path / "providers.yaml"
    bin_dir.mkdir()
    (bin_dir / "login").write_text(PLUGIN.format(folder=tmp_path, host=registry.host))
    (bin_dir / "login").chmod(0o755)
    (tmp_path / "password").write_text("hunter2")
    provider = {
        "name": "login",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "matchImages": [f"{registry.host}/private"],
        "defaultCacheDuration": "0s",
    }
    kind = {"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig"}
    config.write_text(yaml.safe_dump({**kind, "providers": [provider]}))
    made.flags = (
        f"--image-credential-provider-config={config}",
        f"--image-credential-provider-bin-dir={bin_dir}",
    )
    made.start()
    try:
        yield made
    finally:
        made.kill()
        containerd.remove_all_pods()
        unmount_below(made.folder)


def pod_of_image(name: str, image: str, policy: str = "IfNotPresent") -> dict[str, Any]:
    """Writes its image's marker into its log and runs on."""
    main = {
        "name": "main",
        "image": image,
        "imagePullPolicy": policy,
        "command": ["sh", "-c", f"cat /marker; echo; {FOR_EVER}"],
    }
    spec = {"terminationGracePeriodSeconds": 2, "containers": [main]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def runs(agent: Agent, manifest: dict[str, Any]) -> str:
    """Starts the pod; its first line of output."""
    name = manifest["metadata"]["name"]
    agent.put(manifest)
    await agent.wait_for(lambda rows: rows.get(name, {}).get("ready") == 1, seconds=120)
    deadline = time.monotonic() + 120
    while True:
        for log in agent.logs.glob(f"default_{name}-{NODE}_*/main/0.log"):
            line, end, _ = log.read_text().partition("\n")
            if end:
                return line.split(" F ", 1)[1]
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


async def waits(agent: Agent, name: str, reason: str) -> str:
    """The message of the container, once it waits for that reason."""
    seen: dict[str, Any] = {}
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        rows = await agent.pods()
        if name in rows:
            seen = await agent.ask(f"/glass/v1/pods/default/{name}-{NODE}")
            for container in seen["containers"]:
                if container.get("reason") == reason:
                    return str(container["message"])
        await asyncio.sleep(0.1)
    raise AssertionError(f"not {reason}: {json.dumps(seen, indent=1)}\n{agent.tail_of_log()}")


def requests(folder: Path) -> list[dict[str, Any]]:
    """What the plugin was asked."""
    path = folder / "requests"
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


async def test_the_policy_says_whether_a_tag_that_moved_is_followed(agent: Agent, registry: Registry) -> None:
    first = registry.add("public/app", "1", marker="first")
    image = registry.name("public/app", "1")
    assert await runs(agent, pod_of_image("one", image)) == "first"
    second = registry.add("public/app", "1", marker="second")
    assert first != second
    # behaviours.md §8: "Always pulls each time a container starts, even if the image is present"
    assert await runs(agent, pod_of_image("stays", image, "IfNotPresent")) == "first"
    assert registry.pulls("public/app") == [""]
    assert await runs(agent, pod_of_image("follows", image, "Always")) == "second"
    repository = image.rpartition(":")[0]
    assert await runs(agent, pod_of_image("pinned", f"{repository}@{first}")) == "first"


async def test_a_plugin_gives_the_password_and_only_for_a_pull(
    agent: Agent, registry: Registry, tmp_path: Path
) -> None:
    registry.protect("private/", ann="hunter2")
    registry.add("private/app", "1", marker="secret app")
    image = registry.name("private/app", "1")
    assert await runs(agent, pod_of_image("one", image)) == "secret app"
    assert registry.pulls("private/app") == ["ann"]
    # behaviours.md §25: "stdin: request JSON {kind, apiVersion, image, serviceAccountToken?, ...}"
    asked = {
        "kind": "CredentialProviderRequest",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "image": image.rpartition(":")[0],
    }
    assert requests(tmp_path) == [asked]
    assert await runs(agent, pod_of_image("present", image)) == "secret app"
    assert requests(tmp_path) == [asked]
    assert [path for path, content in agent.own_files() if b"hunter2" in content] == []


async def test_a_wrong_password_is_told_held_back_and_tried_again(
    agent: Agent, registry: Registry, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("wrong")
    registry.protect("private/", ann="hunter2")
    registry.add("private/app", "2", marker="at last")
    image = registry.name("private/app", "2")
    agent.put(pod_of_image("app", image))
    # behaviours.md §7: "Waiting reason ImagePullBackOff, message `Back-off pulling image "<image>"` plus `: ` and the
    # last error."
    message = await waits(agent, "app", "ImagePullBackOff")
    assert message.startswith(f'Back-off pulling image "{image}": ErrImagePull: ')
    assert f'failed to pull and unpack image "{image}"' in message
    assert "401 Unauthorized" in message or "authorization failed" in message
    assert "wrong" not in message
    async with asyncio.timeout(120):
        while image not in (await agent.ask(f"/glass/v1/pods/default/app-{NODE}/why"))["sentence"]:
            await asyncio.sleep(0.1)
    (tmp_path / "password").write_text("hunter2")
    await agent.wait_for(lambda rows: rows.get("app", {}).get("ready") == 1, seconds=120)
    assert len(requests(tmp_path)) >= 2


async def test_an_image_that_nobody_pushed_is_told(agent: Agent, registry: Registry) -> None:
    image = registry.name("public/typo", "1")
    agent.put(pod_of_image("typo", image))
    message = await waits(agent, "typo", "ImagePullBackOff")
    assert message.startswith(f'Back-off pulling image "{image}": ErrImagePull: ')
    assert "not found" in message
