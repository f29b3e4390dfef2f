"""Pods that name a RuntimeClass, and pods with ids of their own, over the fake runtime in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from glasslet.api.object import PodUID
from glasslet.host.files.layout import RootLayout
from glasslet.host.user_ids import NoUserIds, SpareIds, UserIds
from glasslet.kubeapi.objects.runtime_classes import RuntimeClasses
from glasslet.pods.runtime_handlers import PodRuntimeHandlers
from glasslet.runtime.model import RuntimeHandler
from glasslet.runtime.spec import NamespaceMode
from tests.builders.pod import UID, container, pod
from tests.component.pod_agent import Agent, Node, running_agent
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.programs import Program, exits

pytestmark = pytest.mark.looptime

KATA = {"metadata": {"name": "sealed"}, "handler": "kata"}
ABLE = (RuntimeHandler(name="", user_namespaces=True), RuntimeHandler(name="kata"))


def node_with(
    server: FakeAPIServer | None = None,
    *,
    ids: UserIds | NoUserIds | None = None,
    handlers: Sequence[RuntimeHandler] = (),
) -> Node:
    classes = RuntimeClasses(client=server) if server is not None else None
    return Node(handlers=PodRuntimeHandlers(classes=classes, handlers=lambda: handlers, ids=ids))


async def refusal(agent: Agent) -> str:
    """What the first refused sandbox says."""
    await agent.until(lambda: agent.events.of("FailedCreatePodSandBox"))
    return agent.events.of("FailedCreatePodSandBox")[0].message


def user_ids(root: Path) -> UserIds:
    return UserIds(root=RootLayout(str(root)), spare=SpareIds())


async def test_the_handler_of_the_class_is_asked_of_the_runtime() -> None:
    server = FakeAPIServer()
    server.put("runtimeclasses", KATA)
    async with running_agent(node_with(server)) as agent:
        agent.add(pod(runtime_class_name="sealed"))
        await agent.until_running("main")
        [sandbox] = agent.runtime.sandboxes.values()
        assert sandbox.spec.runtime_handler == "kata"
        assert server.count("GET", "runtimeclasses") == 1


async def test_pods_without_a_class_need_no_request() -> None:
    server = FakeAPIServer()
    async with running_agent(node_with(server)) as agent:
        agent.add(pod())
        await agent.until_running("main")
        assert server.count("GET") == 0


async def test_a_class_that_does_not_exist_makes_no_sandbox_until_it_does() -> None:
    server = FakeAPIServer()
    async with running_agent(node_with(server)) as agent:
        agent.add(pod(runtime_class_name="sealed"))
        wanted = 'Failed to create pod sandbox: runtimeclass.node.k8s.io "sealed" not found'
        assert await refusal(agent) == wanted
        assert agent.runtime.sandboxes == {}
        server.put("runtimeclasses", KATA)
        await agent.until_running("main")


async def test_a_class_that_was_known_serves_while_the_server_is_away() -> None:
    server = FakeAPIServer()
    server.put("runtimeclasses", KATA)
    async with running_agent(node_with(server)) as agent:
        agent.add(pod(runtime_class_name="sealed"))
        await agent.until_running("main")
        server.down = True
        agent.add(pod(uid="another", name="web-2", runtime_class_name="sealed"))
        await agent.until_running("main", uid="another")


async def test_a_class_that_cannot_be_asked_for_is_told() -> None:
    server = FakeAPIServer()
    server.down = True
    async with running_agent(node_with(server)) as agent:
        agent.add(pod(runtime_class_name="sealed"))
        assert (await refusal(agent)).startswith("Failed to create pod sandbox: failed to lookup RuntimeClass sealed: ")


async def test_an_agent_on_its_own_refuses_a_class() -> None:
    async with running_agent() as agent:
        agent.add(pod(runtime_class_name="sealed"))
        message = await refusal(agent)
        assert message.endswith("failed to lookup RuntimeClass sealed: this kubelet runs without an API server")


async def test_a_restarted_agent_uses_the_handler_that_the_sandbox_has() -> None:
    server = FakeAPIServer()
    server.put("runtimeclasses", KATA)
    node = node_with(server)
    node.runtime.program("main", exits(1, after=50), Program())
    one = pod(runtime_class_name="sealed")
    async with running_agent(node) as agent:
        agent.add(one)
        await agent.until_running("main")
    server.remove("runtimeclasses", "", "sealed")
    async with running_agent(node) as agent:
        agent.add(one)
        await agent.until(lambda: len(node.runtime.instances("main")) == 2)
        assert len(node.runtime.sandboxes) == 1


async def test_sandbox_and_containers_of_a_pod_have_the_same_ids_as_long_as_it_lives(tmp_path: Path) -> None:
    # behaviours.md §30: "userns mode POD with uid and gid mappings when hostUsers is false"
    node = node_with(ids=user_ids(tmp_path), handlers=ABLE)
    node.runtime.program("main", exits(1, after=50), Program())
    one = pod(host_users=False)
    async with running_agent(node) as agent:
        agent.add(one)
        await agent.until_running("main")
        [sandbox] = node.runtime.sandboxes.values()
        first = sandbox.spec.security.namespaces
        assert first.user_mode is NamespaceMode.POD
        assert first.uids == first.gids
        assert node.runtime.container("main").spec.security.namespaces.uids == first.uids
        assert "\nkubelet_started_user_namespaced_pods_total 1\n" in agent.registry.expose().decode()
    node.handlers = PodRuntimeHandlers(classes=None, handlers=lambda: ABLE, ids=user_ids(tmp_path))
    async with running_agent(node) as agent:
        agent.add(one)
        await agent.until(lambda: len(node.runtime.instances("main")) == 2)
        assert node.runtime.container("main").spec.security.namespaces.uids == first.uids
        agent.remove(one)
        await agent.until_gone()
    assert not (tmp_path / "pods" / UID / "userns").exists()


@pytest.mark.parametrize(
    ("handlers", "classes", "problem"),
    [
        ((), None, "runtime does not support user namespaces"),
        ((RuntimeHandler(name=""),), None, "runtime does not support user namespaces"),
        (ABLE, "sealed", 'RuntimeClass handler "kata" does not support user namespaces'),
        (
            ABLE[:1],
            "sealed",
            'RuntimeClass handler "kata" does not support user namespaces: the handler "kata" is not known',
        ),
    ],
)
async def test_a_handler_that_has_no_user_namespaces_gets_no_such_pod(
    tmp_path: Path, handlers: Sequence[RuntimeHandler], classes: str | None, problem: str
) -> None:
    # behaviours.md §30: "(an error if the runtime handler does not support it)"
    server = FakeAPIServer()
    server.put("runtimeclasses", KATA)
    async with running_agent(node_with(server, ids=user_ids(tmp_path), handlers=handlers)) as agent:
        agent.add(pod(host_users=False, runtime_class_name=classes))
        message = await refusal(agent)
        assert message == f"Failed to create pod sandbox: can't set `spec.hostUsers: false`, {problem}"
        assert agent.runtime.sandboxes == {}


@pytest.mark.parametrize("host_users", [True, False])
async def test_without_the_gate_the_field_is_refused(host_users: bool) -> None:
    async with running_agent(node_with(handlers=ABLE)) as agent:
        agent.add(pod(host_users=host_users))
        message = await refusal(agent)
        assert message.endswith('the feature gate "UserNamespacesSupport" is disabled: can\'t set spec.HostUsers')


async def test_a_node_without_spare_ids_still_runs_other_pods() -> None:
    node = node_with(ids=NoUserIds("mismatched subuids and subgids"), handlers=ABLE)
    async with running_agent(node) as agent:
        agent.add(pod(host_users=False))
        agent.add(pod(container(), uid="another", name="web-2", host_users=True))
        assert await refusal(agent) == "Failed to create pod sandbox: user namespace: mismatched subuids and subgids"
        await agent.until_running("main", uid=PodUID("another"))
