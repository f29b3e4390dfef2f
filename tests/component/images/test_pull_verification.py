"""Images that are there, but not for everybody (gate KubeletEnsureSecretPulledImages). Quotes: behaviours.md §8."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from glasslet.api.container import Container
from glasslet.api.meta import ObjectMeta
from glasslet.api.pod import Pod, PodSpec
from glasslet.concurrency.clock import LoopClock
from glasslet.record.store import Record
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.images import ImageManager, ImageProblem
from glasslet.runtime.images.pull_record_files import PullRecordFiles
from glasslet.runtime.images.verification import PullVerification, VerificationPolicy
from glasslet.runtime.model import Image
from glasslet.runtime.protocols import AuthSource, RegistryAuth
from tests.fakes.content import silent_watch
from tests.fakes.programs import Pull
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.looptime

APP = "r.example/team/app:1"


def auth(password: str = "hunter2", name: str = "pull", kind: str = "Secret") -> RegistryAuth:
    source = AuthSource(kind=kind, uid=f"uid-{name}", namespace="default", name=name)
    return RegistryAuth(username="ann", password=password, source=source)


NODE_S_OWN = RegistryAuth(username="node", password="x")


class Node:
    """Agents one after the other on the same runtime and disk; `restart` begins a new one."""

    def __init__(self, folder: Path, policy: str = "NeverVerifyPreloadedImages", *allowed: str) -> None:
        self.folder = folder
        self.policy = VerificationPolicy(name=policy, allowlist=allowed)
        self.runtime = FakeRuntime()
        self.events: list[str] = []
        self.restart()

    def restart(self) -> None:
        self.files = PullRecordFiles(str(self.folder))
        self.verification = PullVerification(
            policy=self.policy, files=self.files, images=self.runtime, clock=LoopClock()
        )
        self.manager = ImageManager(
            images=self.runtime,
            recorder=Record(clock=LoopClock()),
            events=lambda pod, kind, reason, message, path: self.events.append(message),
            clock=LoopClock(),
            watch=silent_watch(Record(), lambda *_: None, LoopClock()),
            verification=self.verification,
        )

    async def pulls(
        self, *auths: RegistryAuth, image: str = APP, policy: str = "IfNotPresent", pod: str = "web"
    ) -> int:
        """Asks for the image; how many pulls that took. Raises AssertionError if the pod does not get it."""
        before = self._pulls()
        found = await self.ask(*auths, image=image, policy=policy, pod=pod)
        assert isinstance(found, Image), found
        return self._pulls() - before

    async def ask(
        self, *auths: RegistryAuth, image: str = APP, policy: str = "IfNotPresent", pod: str = "web"
    ) -> Image | ImageProblem:
        container = Container(name="main", image=image, image_pull_policy=policy)
        meta = ObjectMeta(name=pod, namespace="default", uid=f"uid-{pod}")
        made = Pod(metadata=meta, spec=PodSpec(containers=(container,)))
        return await self.manager.ensure(made, container, sandbox=None, auths=auths)

    def _pulls(self) -> int:
        return sum(1 for call in self.runtime.calls if call.verb is Verb.PULL_IMAGE)


async def test_an_image_of_one_secret_is_for_others_only_after_a_pull_of_theirs(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert await node.pulls(auth()) == 1
    assert await node.pulls(auth()) == 0
    assert node.events[-1] == f'Container image "{APP}" already present on machine and can be accessed by the pod'
    assert await node.pulls(auth("other", "other")) == 1
    assert await node.pulls(auth("other", "other")) == 0
    assert await node.pulls() == 1


async def test_a_pod_that_cannot_pull_does_not_get_the_image_though_it_is_there(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.pulls(auth())
    node.runtime.pulls[APP] = Pull(error="401 Unauthorized")
    refused = await node.ask(pod="thief")
    assert isinstance(refused, ImageProblem)
    assert (refused.reason, refused.message) == ("ErrImagePull", "401 Unauthorized")
    assert await node.pulls(auth()) == 0


async def test_policy_never_does_not_open_what_the_pod_has_no_right_to(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.pulls(auth())
    refused = await node.ask(policy="Never")
    assert isinstance(refused, ImageProblem)
    assert refused.reason == "ErrImageNeverPull"
    assert await node.pulls(auth(), policy="Never") == 0


async def test_what_was_pulled_without_or_with_the_node_s_credentials_is_everybody_s(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert await node.pulls() == 1
    assert await node.pulls(auth()) == 0
    assert await node.pulls(NODE_S_OWN, image="r.example/node:1") == 1
    assert await node.pulls(image="r.example/node:1") == 0


async def test_the_same_password_counts_from_any_secret_and_the_same_secret_with_any_password(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.pulls(auth("hunter2", "first"))
    assert await node.pulls(auth("hunter2", "copy")) == 0
    assert await node.pulls(auth("rotated", "first")) == 0
    # Both were learnt.
    assert await node.pulls(auth("new", "copy")) == 0
    assert await node.pulls(auth("rotated", "third")) == 0


async def test_a_service_account_counts_as_itself(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.pulls(auth(name="builder", kind="ServiceAccount"))
    assert await node.pulls(auth("later", "builder", kind="ServiceAccount")) == 0
    assert await node.pulls(auth(name="default", kind="ServiceAccount")) == 1


async def test_the_right_is_for_the_repository_not_for_another_name_of_the_image(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.pulls(auth())
    node.runtime.images["r.example/copy:1"] = node.runtime.images[APP]
    assert await node.pulls(auth(), image="r.example/copy:1") == 1


async def test_rights_outlive_the_agent_and_damage_means_to_prove_them_again(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.pulls(auth())
    node.restart()
    assert await node.pulls(auth()) == 0
    (record,) = (tmp_path / "image_manager" / "pulled").iterdir()
    record.write_text("{")
    assert await node.pulls(auth()) == 1
    assert await node.pulls(auth()) == 0


async def test_a_pull_that_an_agent_died_in_leaves_an_image_of_unknown_right(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.files.intend(APP)
    node.runtime.add_image(APP)
    node.restart()
    assert await node.pulls(auth()) == 1
    assert not node.files.intents()


async def test_a_failed_pull_leaves_no_intent(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.runtime.pulls[APP] = Pull(error="no")
    await node.ask()
    assert not node.files.intents()


@pytest.mark.parametrize(
    ("policy", "allowed", "preloaded", "pulled"),
    [
        ("NeverVerify", (), 0, 0),
        ("NeverVerifyPreloadedImages", (), 0, 1),
        ("NeverVerifyAllowlistedImages", ("r.example/team/*",), 0, 0),
        ("NeverVerifyAllowlistedImages", ("r.example/team/app",), 0, 0),
        ("NeverVerifyAllowlistedImages", ("r.example/team/ap",), 1, 1),
        ("AlwaysVerify", (), 1, 1),
    ],
)
async def test_the_policy_says_which_images_are_looked_at(
    tmp_path: Path, policy: str, allowed: tuple[str, ...], preloaded: int, pulled: int
) -> None:
    there = Node(tmp_path / "preloaded", policy, *allowed)
    there.runtime.add_image(APP)
    assert await there.pulls() == preloaded
    here = Node(tmp_path / "pulled", policy, *allowed)
    await here.pulls(auth(), policy="Always")
    assert await here.pulls() == pulled


async def test_records_of_images_that_are_gone_are_dropped(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.pulls(auth())
    other = await node.ask(auth(), image="r.example/other:1")
    assert isinstance(other, Image)
    now = LoopClock().now()
    await node.verification.prune({other.id}, now)
    assert len(node.files.records()) == 2
    await node.verification.prune({other.id}, now + timedelta(seconds=2))
    assert [record.image_ref for record in node.files.records()] == [other.id]


async def test_a_disk_that_takes_no_record_keeps_the_pull_from_beginning(tmp_path: Path) -> None:
    node = Node(tmp_path)
    (tmp_path / "image_manager").write_text("in the way")
    refused = await node.ask(policy="Always")
    assert isinstance(refused, ImageProblem)
    assert refused.reason.startswith("failed to record image pull intent: ")
    assert refused.message.startswith(f'Failed to record image pull intent for container image "{APP}": failed to')
