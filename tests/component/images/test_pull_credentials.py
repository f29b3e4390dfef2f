"""Credentials for pulls: the pod's secrets and the node's files. Quotes: behaviours.md §8."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from glasslet.concurrency.clock import LoopClock
from glasslet.kubeapi.objects.pod_objects import Detection, PodObjects, build_pod_objects
from glasslet.runtime.images.keyring import Keyring
from glasslet.runtime.images.keyring_files import NodeKeyring, credential_paths
from glasslet.runtime.images.keyring_secrets import PullCredentials
from glasslet.runtime.protocols import RegistryAuth
from tests.builders.objects import secret, with_data
from tests.builders.podspec import pod_of
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.pod_node import EventLog
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.looptime

IMAGE = "registry.example/team/app:1"


def config(**users: str) -> dict[str, Any]:
    return {place.replace("_", "."): {"username": user, "password": "hunter2"} for place, user in users.items()}


def pull_secret(name: str, auths: dict[str, Any]) -> dict[str, Any]:
    body = secret(name, kind="kubernetes.io/dockerconfigjson")
    return with_data(body, {".dockerconfigjson": json.dumps({"auths": auths})})


def legacy_secret(name: str, auths: dict[str, Any]) -> dict[str, Any]:
    return with_data(secret(name, kind="kubernetes.io/dockercfg"), {".dockercfg": json.dumps(auths)})


class Node:
    def __init__(self, *paths: tuple[str, bool]) -> None:
        clock = LoopClock()
        self.server, self.events = FakeAPIServer(), EventLog()
        detection = Detection(strategy="Get", sync_frequency=60.0, on_change=lambda uid: None)
        objects: PodObjects = build_pod_objects(detection, client=self.server, recorder=WaitLog(), clock=clock)
        own = NodeKeyring(paths=paths, clock=clock)
        self.credentials = PullCredentials(secrets=objects, node=own, events=self.events)
        self.standalone = PullCredentials(secrets=None, node=own, events=self.events)

    async def users(self, *secrets: str, image: str = IMAGE) -> list[str]:
        pod = pod_of(imagePullSecrets=[{"name": name} for name in secrets])
        return [auth.username for auth in await self.credentials.matching(pod, image)]


async def test_both_types_of_pull_secrets_count_in_the_pod_s_order() -> None:
    node = Node()
    node.server.put("secrets", pull_secret("new", config(registry_example="ann")))
    node.server.put("secrets", legacy_secret("old", config(registry_example="bob")))
    assert await node.users("new", "old") == ["ann", "bob"]
    assert await node.users("old", "new") == ["bob", "ann"]
    assert node.events.told == []


# "Credentials tried in order: the pod's imagePullSecrets ..., node files"
async def test_the_pod_s_own_come_before_the_node_s(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"auths": config(registry_example="node")}))
    node = Node((str(tmp_path / "config.json"), False))
    node.server.put("secrets", pull_secret("new", config(registry_example="ann")))
    assert await node.users("new") == ["ann", "node"]
    assert await node.users() == ["node"]
    assert [a.username for a in await node.standalone.matching(pod_of(), IMAGE)] == ["node"]


# "with none, anonymous"
async def test_nothing_that_fits_is_an_anonymous_pull() -> None:
    node = Node()
    node.server.put("secrets", pull_secret("new", config(other_example="ann")))
    assert await node.users("new") == []
    assert await node.users("new", image="Not An Image") == []


async def test_familiar_names_use_the_hub_s_credentials() -> None:
    node = Node()
    node.server.put(
        "secrets", pull_secret("hub", {"https://index.docker.io/v1/": {"username": "ann", "password": "x"}})
    )
    assert await node.users("hub", image="busybox") == ["ann"]
    assert await node.users("hub", image="acme/app:2") == ["ann"]


# "Unreadable pull secrets: event FailedToRetrieveImagePullSecret, pull goes on."
async def test_missing_pull_secrets_are_told_and_the_others_are_used() -> None:
    node = Node()
    node.server.put("secrets", pull_secret("new", config(registry_example="ann")))
    assert await node.users("gone", "", "new", "lost") == ["ann"]
    (event,) = node.events.told
    assert (event.type_, event.reason) == ("Warning", "FailedToRetrieveImagePullSecret")
    assert event.message == (
        "Unable to retrieve some image pull secrets (gone, lost); attempting to pull the image may not succeed."
    )


async def test_a_pull_secret_that_cannot_be_read_is_told_without_showing_it() -> None:
    node = Node()
    broken = with_data(secret("bad", kind="kubernetes.io/dockerconfigjson"), {".dockerconfigjson": '{"hunter2'})
    node.server.put("secrets", broken)
    assert await node.users("bad") == []
    (event,) = node.events.told
    assert event.reason == "FailedToRetrieveImagePullSecret"
    assert "hunter2" not in event.message


async def test_secrets_of_other_types_are_no_credentials() -> None:
    node = Node()
    node.server.put("secrets", with_data(secret("opaque"), {".dockerconfigjson": json.dumps({"auths": {}})}))
    assert await node.users("opaque") == []
    assert node.events.told == []


# "`config.json` in <root-dir>, working directory, $HOME/.docker, /.docker; `.dockercfg` in <root-dir>, working
# directory, $HOME, /; first found wins; cached for 5 min"
def test_places_of_the_node_s_own_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    paths = credential_paths("/var/lib/kubelet", "/root")
    assert paths == (
        ("/var/lib/kubelet/config.json", False),
        (f"{tmp_path}/config.json", False),
        ("/root/.docker/config.json", False),
        ("/.docker/config.json", False),
        ("/var/lib/kubelet/.dockercfg", True),
        (f"{tmp_path}/.dockercfg", True),
        ("/root/.dockercfg", True),
        ("/.dockercfg", True),
    )


async def test_first_readable_file_wins_and_is_kept_for_five_minutes(tmp_path: Path) -> None:
    broken, first, second = (tmp_path / name for name in ("broken", "first", "second"))
    broken.write_text("{")
    second.write_text(json.dumps(config(registry_example="second")))
    node = Node((str(tmp_path / "gone"), False), (str(broken), False), (str(first), False), (str(second), True))
    assert await node.users() == ["second"]
    first.write_text(json.dumps({"auths": config(registry_example="first")}))
    await asyncio.sleep(299)
    assert await node.users() == ["second"]
    await asyncio.sleep(2)
    assert await node.users() == ["first"]


async def test_secrets_with_very_many_patterns_are_searched_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    # 30,000 patterns took a second of the event loop, and up to seven where they are long.
    searched_in: set[int] = set()
    search = Keyring.matching

    def noted(keyring: Keyring, repository: str) -> tuple[RegistryAuth, ...]:
        if keyring.entries:
            searched_in.add(threading.get_ident())
        return search(keyring, repository)

    monkeypatch.setattr(Keyring, "matching", noted)
    node = Node()
    node.server.put("secrets", pull_secret("many", config(**{f"*{n}_example": "ann" for n in range(3000)})))
    node.server.put("secrets", pull_secret("own", config(registry_example="bob")))
    assert await node.users("many", "own") == ["bob"]
    assert searched_in.isdisjoint({threading.get_ident()})
