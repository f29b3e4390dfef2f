"""ImageManager over the fake runtime, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from glasslet.api.container import Container
from glasslet.api.meta import ObjectMeta
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import LoopClock
from glasslet.record.events import Decided
from glasslet.record.recorder import working_for
from glasslet.record.store import Record
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected
from glasslet.runtime.images import ImageManager, ImageProblem, PullPolicy
from glasslet.runtime.model import Image
from glasslet.runtime.protocols import RegistryAuth
from glasslet.runtime.spec import SandboxSpec
from tests.fakes.content import silent_watch
from tests.fakes.programs import Pull
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.looptime

JOB = "registry.example.com/acme/job:7"
SANDBOX = SandboxSpec(name="web", namespace="default", uid="uid-web")


class Node:
    """An image manager, its runtime, and what it told."""

    def __init__(self, **policy: Any) -> None:
        self.runtime = FakeRuntime()
        self.record = Record(clock=LoopClock())
        self.events: list[tuple[str, str, str]] = []
        self.paths: set[str] = set()
        self.figures: list[tuple[str, float]] = []
        self.manager = ImageManager(
            images=self.runtime,
            recorder=self.record,
            events=self._event,
            clock=LoopClock(),
            watch=silent_watch(self.record, self._event, LoopClock()),
            policy=PullPolicy(**policy),
            metrics=self,
        )

    def _event(self, pod: PodRef, kind: str, reason: str, message: str, field_path: str) -> None:
        self.events.append((kind, reason, message))
        self.paths.add(field_path)

    def pulled(self, size_label: str, seconds: float) -> None:
        self.figures.append((size_label, seconds))

    async def ensure(
        self, image: str, policy: str = "", *, uid: str = "uid-web", auths: tuple[RegistryAuth, ...] = ()
    ) -> Image | ImageProblem:
        container = Container(name="main", image=image, image_pull_policy=policy)
        pod = Pod(metadata=ObjectMeta(name="web", namespace="default", uid=uid), spec=PodSpec(containers=(container,)))
        return await self.manager.ensure(pod, container, sandbox=SANDBOX, auths=auths)

    def pulls(self) -> int:
        return sum(1 for call in self.runtime.calls if call.verb is Verb.PULL_IMAGE)

    def forget_events(self) -> list[tuple[str, str, str]]:
        events, self.events = self.events, []
        return events


async def test_a_present_image_is_not_pulled_unless_always() -> None:
    node = Node()
    node.runtime.add_image(JOB)
    found = await node.ensure(JOB, "IfNotPresent")
    assert isinstance(found, Image)
    assert node.pulls() == 0
    assert node.events == [("Normal", "Pulled", f'Container image "{JOB}" already present on machine')]
    assert node.paths == {"spec.containers{main}"}


async def test_always_pulls_even_what_is_present() -> None:
    # behaviours.md §8: "Always pulls each time a container starts, even if the image is present"
    node = Node()
    node.runtime.add_image(JOB)
    await node.ensure(JOB, "Always")
    await node.ensure(JOB, "Always")
    assert node.pulls() == 2


async def test_never_with_a_missing_image_is_a_problem() -> None:
    # behaviours.md §8: "Never with a missing image gives ErrImageNeverPull."
    node = Node()
    problem = await node.ensure(JOB, "Never")
    text = f'Container image "{JOB}" is not present with pull policy of Never'
    assert problem == ImageProblem(reason="ErrImageNeverPull", message=text)
    assert node.events == [
        ("Warning", "ErrImageNeverPull", text),
        ("Warning", "Failed", "Error: ErrImageNeverPull"),
    ]


async def test_without_a_policy_the_tag_decides() -> None:
    node = Node()
    node.runtime.add_image("busybox:latest")
    node.runtime.add_image("busybox:1")
    await node.ensure("busybox")
    await node.ensure("busybox:1")
    assert node.pulls() == 1


async def test_a_pull_tells_its_begin_and_its_end_with_durations_and_size() -> None:
    # behaviours.md §8: "After a pull the size is read for the Pulled event."
    node = Node()
    node.runtime.pulls[JOB] = Pull(takes=1.2345)
    image = await node.ensure(JOB, "IfNotPresent")
    assert isinstance(image, Image)
    assert node.events == [
        ("Normal", "Pulling", f'Pulling image "{JOB}"'),
        (
            "Normal",
            "Pulled",
            f'Successfully pulled image "{JOB}" in 1.234s (1.234s including waiting). Image size: 1000000 bytes.',
        ),
    ]
    ((size, seconds),) = node.figures
    assert (size, round(seconds, 6)) == ("0-10MB", 1.2345)


async def test_the_runtime_gets_the_name_as_written_with_the_tag_made_explicit() -> None:
    node = Node()
    await node.ensure("acme/job")
    assert [call.subject for call in node.runtime.calls if call.verb is Verb.PULL_IMAGE] == ["acme/job:latest"]


async def test_a_name_that_is_none_is_a_problem_and_reaches_no_runtime() -> None:
    node = Node()
    problem = await node.ensure("Not A Name")
    text = (
        'Failed to apply default image tag "Not A Name": couldn\'t parse image name "Not A Name": '
        "invalid reference format: repository name (library/Not A Name) must be lowercase"
    )
    assert problem == ImageProblem(reason="InvalidImageName", message=text)
    assert node.events == [("Warning", "InspectFailed", text), ("Warning", "Failed", "Error: InvalidImageName")]
    assert node.runtime.calls == []


async def test_a_failed_inspection_is_a_problem() -> None:
    node = Node()
    node.runtime.fail(Verb.IMAGE_STATUS, RuntimeRejected("ImageStatus", "disk on fire", code="INTERNAL"))
    problem = await node.ensure(JOB, "IfNotPresent")
    text = 'Failed to inspect image "": rpc error: code = Internal desc = disk on fire'
    assert problem == ImageProblem(reason="ImageInspectError", message=text)
    assert node.events == [("Warning", "InspectFailed", text), ("Warning", "Failed", "Error: ImageInspectError")]


async def test_a_failed_pull_is_held_back_and_tried_again_later() -> None:
    # behaviours.md §7: "Waiting reason ImagePullBackOff, message `Back-off pulling image "<image>"` plus `: ` and the
    # last error."
    node = Node()
    node.runtime.pulls[JOB] = Pull(error="manifest unknown")
    first = await node.ensure(JOB, "IfNotPresent")
    assert first == ImageProblem(reason="ErrImagePull", message="manifest unknown", retry_at=10)
    assert node.forget_events() == [
        ("Normal", "Pulling", f'Pulling image "{JOB}"'),
        ("Warning", "Failed", f'Failed to pull image "{JOB}": manifest unknown'),
        ("Warning", "Failed", "Error: ErrImagePull"),
    ]
    held = await node.ensure(JOB, "IfNotPresent")
    assert held == ImageProblem(
        reason="ImagePullBackOff",
        message=f'Back-off pulling image "{JOB}": ErrImagePull: manifest unknown',
        retry_at=10,
    )
    assert node.forget_events() == [
        ("Normal", "BackOff", f'Back-off pulling image "{JOB}"'),
        ("Warning", "Failed", "Error: ImagePullBackOff"),
    ]
    assert node.pulls() == 1
    await asyncio.sleep(10)
    again = await node.ensure(JOB, "IfNotPresent")
    assert isinstance(again, ImageProblem)
    assert (again.reason, again.retry_at) == ("ErrImagePull", 30)


async def test_a_pull_that_works_in_the_end_gives_the_image() -> None:
    node = Node()
    node.runtime.pulls[JOB] = Pull(error="try later")
    await node.ensure(JOB)
    node.runtime.pulls[JOB] = Pull()
    await asyncio.sleep(10)
    assert isinstance(await node.ensure(JOB), Image)


async def test_an_image_that_came_another_way_needs_no_waiting() -> None:
    node = Node()
    node.runtime.pulls[JOB] = Pull(error="no network")
    await node.ensure(JOB, "IfNotPresent")
    node.runtime.add_image(JOB)
    assert isinstance(await node.ensure(JOB, "IfNotPresent"), Image)


async def test_reasons_of_the_runtime_are_passed_on() -> None:
    node = Node()
    node.runtime.pulls[JOB] = Pull(error="RegistryUnavailable: refused", reason="RegistryUnavailable")
    problem = await node.ensure(JOB)
    assert isinstance(problem, ImageProblem)
    assert problem.reason == "RegistryUnavailable"
    assert problem.message == f"image pull failed for {JOB} because the registry is unavailable: refused"
    held = await node.ensure(JOB)
    assert isinstance(held, ImageProblem)
    assert held.message == f'Back-off pulling image "{JOB}": RegistryUnavailable: {problem.message}'


async def test_every_credential_is_tried_and_all_errors_are_named() -> None:
    # behaviours.md §8: "Every matching credential is tried, all errors are joined; with none, anonymous."
    node = Node()
    one, two = RegistryAuth(username="one", password="s3cret"), RegistryAuth(username="two", password="s3cret")
    node.runtime.pulls[JOB] = Pull(error="denied")
    problem = await node.ensure(JOB, auths=(one, two))
    assert [auth for _, auth in node.runtime.pulled_with] == [one, two]
    assert isinstance(problem, ImageProblem)
    assert "s3cret" not in repr((problem, node.events))


async def test_of_very_many_credentials_a_hundred_are_tried_and_the_record_says_so() -> None:
    node = Node()
    node.runtime.pulls[JOB] = Pull(error="denied")
    auths = tuple(RegistryAuth(username=f"user-{number}", password="s3cret") for number in range(20_000))
    with working_for(PodRef("default", "web", "uid-web")):  # type: ignore[arg-type]
        assert isinstance(await node.ensure(JOB, auths=auths), ImageProblem)
    assert [auth for _, auth in node.runtime.pulled_with] == list(auths[:100])
    record = node.record.of("uid-web")
    assert record is not None
    (said,) = [e for e in record.events if isinstance(e, Decided) and e.what == "only the first credentials are tried"]
    assert dict(said.inputs) == {"fit": "20000", "tried": "100"}


async def test_without_credentials_the_pull_is_anonymous() -> None:
    node = Node()
    await node.ensure(JOB)
    assert node.runtime.pulled_with == [(JOB, None)]


async def test_pulls_are_serial_by_default() -> None:
    node = Node()
    images = [f"acme/job:{n}" for n in range(3)]
    for image in images:
        node.runtime.pulls[image] = Pull(takes=10)
    await asyncio.gather(*(node.ensure(image) for image in images))
    assert asyncio.get_running_loop().time() == pytest.approx(30)
    assert "in 10s (30s including waiting)" in node.events[-1][2]


async def test_parallel_pulls_run_together() -> None:
    node = Node(serialize_image_pulls=False)
    images = [f"acme/job:{n}" for n in range(5)]
    for image in images:
        node.runtime.pulls[image] = Pull(takes=10)
    await asyncio.gather(*(node.ensure(image) for image in images))
    assert asyncio.get_running_loop().time() == pytest.approx(10)


async def test_parallel_pulls_keep_to_their_limit() -> None:
    node = Node(serialize_image_pulls=False, max_parallel_image_pulls=2)
    images = [f"acme/job:{n}" for n in range(4)]
    for image in images:
        node.runtime.pulls[image] = Pull(takes=10)
    await asyncio.gather(*(node.ensure(image) for image in images))
    assert asyncio.get_running_loop().time() == pytest.approx(20)


async def test_pods_that_want_the_same_image_share_one_pull() -> None:
    node = Node()
    node.runtime.pulls[JOB] = Pull(takes=10)
    found = await asyncio.gather(*(node.ensure(JOB, uid=f"uid-{n}") for n in range(5)))
    assert node.pulls() == 1
    assert all(isinstance(one, Image) for one in found)


async def test_other_credentials_are_another_pull() -> None:
    node = Node()
    auth = RegistryAuth(username="me", password="x")
    await asyncio.gather(node.ensure(JOB, uid="a"), node.ensure(JOB, uid="b", auths=(auth,)))
    assert node.pulls() == 2


async def test_when_the_pod_that_pulls_goes_away_the_next_one_pulls() -> None:
    node = Node()
    node.runtime.pulls[JOB] = Pull(takes=10)
    first = asyncio.create_task(node.ensure(JOB, uid="a"))
    second = asyncio.create_task(node.ensure(JOB, uid="b"))
    await asyncio.sleep(5)
    first.cancel()
    assert isinstance(await second, Image)
    assert node.pulls() == 2


async def test_a_shared_failure_holds_back_every_pod_by_itself() -> None:
    node = Node()
    node.runtime.pulls[JOB] = Pull(takes=1, error="denied")
    found = await asyncio.gather(*(node.ensure(JOB, uid=uid) for uid in "ab"))
    assert [getattr(p, "reason", None) for p in found] == ["ErrImagePull", "ErrImagePull"]
    held = [await node.ensure(JOB, uid=uid) for uid in "ab"]
    assert [getattr(p, "reason", None) for p in held] == ["ImagePullBackOff", "ImagePullBackOff"]


async def test_too_many_pulls_a_second_are_refused() -> None:
    # behaviours.md §8: "Pull is throttled by registryPullQPS/Burst (error text `pull QPS exceeded`)"
    node = Node(registry_pull_qps=1, registry_burst=2)
    found = [await node.ensure(f"acme/job:{n}") for n in range(3)]
    assert isinstance(found[2], ImageProblem)
    assert (found[2].reason, found[2].message) == ("ErrImagePull", "pull QPS exceeded")
    assert node.pulls() == 2


async def test_the_decision_and_what_it_was_made_on_is_in_the_record() -> None:
    node = Node()
    with working_for(PodRef("default", "web", "uid-web")):  # type: ignore[arg-type]
        await node.ensure(JOB, "IfNotPresent")
    record = node.record.of("uid-web")
    assert record is not None
    decisions = [e for e in record.events if isinstance(e, Decided)]
    assert [d.what for d in decisions] == ["Pulling", "Pulled"]
    assert ("policy", "IfNotPresent") in decisions[0].inputs
