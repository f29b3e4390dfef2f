"""The life of API pods, from the server's watch to the deletion of the object, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from glasslet.api.object import PodUID
from glasslet.kubeapi.errors import Unavailable
from tests.component.api_agent import api_pod, running
from tests.component.pod_agent import Node
from tests.fakes.api_server import FakeAPIServer

pytestmark = pytest.mark.looptime


async def test_pod_of_the_node_runs_and_its_status_reaches_the_server() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod())
        await agent.until_ready()
        status = (agent.seen() or {})["status"]
    assert status["phase"] == "Running"
    assert status["hostIP"] == "192.0.2.1"
    assert status["containerStatuses"][0]["ready"] is True


async def test_pod_of_another_node_is_left_alone() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod(nodeName="n2"))
        await asyncio.sleep(60)
        assert not agent.census.snapshot()


async def test_deleted_pod_is_stopped_first_and_its_object_goes_last() -> None:
    # behaviours.md §4: "The API object is deleted only when its API phase is terminal or the pod is being deleted, and
    # the worker finished; delete uses grace 0 and a UID precondition."
    server = FakeAPIServer()
    async with running(server) as agent:
        uid = server.put("pods", api_pod())["metadata"]["uid"]
        await agent.until_ready()
        server.delete_pod("default", "web", 5)
        await agent.until(lambda: agent.seen() is None)
        assert not agent.runtime.running(uid)
        assert PodUID(uid) not in agent.node.volumes.mounted
        await agent.until_gone(uid)
    deletes = [one.body for one in server.requests if one.verb == "DELETE"]
    assert deletes == [{"uid": uid, "gracePeriodSeconds": 0}]


async def test_object_stays_while_volumes_are_mounted() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod(volumes=[{"name": "data", "emptyDir": {}}]))
        await agent.until_ready()
        agent.node.volumes.problem = "device is busy"
        server.delete_pod("default", "web", 1)
        await asyncio.sleep(60)
        assert agent.seen() is not None
        agent.node.volumes.problem = ""
        await agent.until(lambda: agent.seen() is None)


async def test_object_stays_until_the_final_status_is_accepted() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod())
        await agent.until_ready()
        server.delete_pod("default", "web", 1)
        server.fail_next(Unavailable, verb="PATCH", times=8)
        await asyncio.sleep(10)
        assert agent.seen() is not None
        await agent.until(lambda: agent.seen() is None)
    # The fake server deletes nothing by itself: the last PATCH before DELETE told the end.
    last = [one for one in server.requests if one.verb in ("PATCH", "DELETE")][-2:]
    assert [one.verb for one in last] == ["PATCH", "DELETE"]
    assert last[0].body["status"]["phase"] in ("Failed", "Succeeded")


async def test_terminal_phase_is_withheld_while_containers_may_run() -> None:
    # behaviours.md §4: "A terminal phase is withheld from the API while containers may still run."
    server = FakeAPIServer()
    node = Node()
    async with running(server, node) as agent:
        uid = server.put("pods", api_pod(activeDeadlineSeconds=30))["metadata"]["uid"]
        await agent.until_ready()
        phases: list[tuple[str, bool]] = []
        for _ in range(4000):
            phases.append((agent.phase(), bool(agent.runtime.running(uid))))
            await asyncio.sleep(0.01)
        assert ("Failed", True) not in phases
        await agent.until(lambda: agent.phase() == "Failed")
        assert (agent.seen() or {})["status"]["reason"] == "DeadlineExceeded"


async def test_pod_deleted_before_it_ever_started_is_only_cleaned_up() -> None:
    # behaviours.md §1: "A pod with deletionTimestamp that never started here is only cleaned up and deleted from the
    # API."
    server = FakeAPIServer()
    uid = server.put("pods", api_pod())["metadata"]["uid"]
    server.delete_pod("default", "web")
    async with running(server) as agent:
        await agent.until(lambda: agent.seen() is None)
        await agent.until_gone(uid)
        assert not agent.runtime.containers


async def test_forced_deletion_still_stops_the_containers() -> None:
    # behaviours.md §4: "Forced deletion (grace 0) marks the object with grace 0 and removes it at once; the kubelet
    # still stops the containers, with the 2 s minimum."
    server = FakeAPIServer()
    async with running(server) as agent:
        uid = server.put("pods", api_pod())["metadata"]["uid"]
        await agent.until_ready()
        server.remove("pods", "default", "web")
        await agent.until_gone(uid)
        assert not agent.runtime.running(uid)
    assert not server.count("DELETE")


async def test_pod_of_the_same_name_and_another_uid_is_another_pod() -> None:
    # behaviours.md §1: "API pods of the same name but other UID do not wait for each other."
    server = FakeAPIServer()
    async with running(server) as agent:
        old = server.put("pods", api_pod())["metadata"]["uid"]
        await agent.until_ready()
        server.remove("pods", "default", "web")
        new = server.put("pods", api_pod())["metadata"]["uid"]
        await agent.until_ready()
        await agent.until_gone(old)
        assert agent.runtime.running(new)
        assert agent.phase() == "Running"
        assert (agent.seen() or {})["metadata"]["uid"] == new


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_pod_of_terminal_phase_never_starts_again(phase: str) -> None:
    # behaviours.md §5: "A terminal phase in the API never goes back."
    server = FakeAPIServer()
    pod = api_pod()
    pod["status"]["phase"] = phase
    server.put("pods", pod)
    async with running(server) as agent:
        await asyncio.sleep(120)
        assert not agent.runtime.containers
        assert agent.phase() == phase


async def test_pod_that_others_declare_failed_is_stopped() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        uid = server.put("pods", api_pod())["metadata"]["uid"]
        await agent.until_ready()
        server.change("pods", "default", "web", {"status": {"phase": "Failed", "reason": "Shot"}})
        await agent.until(lambda: not agent.runtime.running(uid))
        await asyncio.sleep(30)
        assert (agent.phase(), (agent.seen() or {})["status"]["reason"]) == ("Failed", "Shot")


async def test_status_changed_by_others_is_written_back() -> None:
    # behaviours.md §6: "In the full pass a status changed by others is written back."
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod())
        await agent.until_ready()
        server.change("pods", "default", "web", {"status": {"phase": "Pending", "podIP": "1.2.3.4"}})
        await asyncio.sleep(12)
        assert agent.phase() == "Running"
        assert (agent.seen() or {})["status"]["podIP"] != "1.2.3.4"


async def test_conditions_and_fields_of_others_are_kept() -> None:
    # behaviours.md §6: "All others in the API are kept."
    server = FakeAPIServer()
    theirs: dict[str, Any] = {
        "conditions": [{"type": "example.com/Warm", "status": "True", "reason": "Sun"}],
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu-x"}],
    }
    async with running(server) as agent:
        server.put("pods", api_pod())
        server.change("pods", "default", "web", {"status": theirs})
        await agent.until_ready()
        server.change("pods", "default", "web", {"status": {"conditions": [{"type": "Late", "status": "False"}]}})
        agent.runtime.kill(agent.runtime.container("main").id, code=1)
        await asyncio.sleep(30)
        status = (agent.seen() or {})["status"]
    assert agent.condition("example.com/Warm")["reason"] == "Sun"
    assert agent.condition("Late")["status"] == "False"
    assert status["resourceClaimStatuses"] == theirs["resourceClaimStatuses"]


async def test_readiness_gate_set_by_others_makes_the_pod_ready() -> None:
    # behaviours.md §6: "Ready = ContainersReady and all readinessGates True"
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod(readinessGates=[{"conditionType": "example.com/In"}]))
        await agent.until(lambda: agent.condition("ContainersReady").get("status") == "True")
        assert agent.condition("Ready")["reason"] == "ReadinessGatesNotReady"
        server.change(
            "pods", "default", "web", {"status": {"conditions": [{"type": "example.com/In", "status": "True"}]}}
        )
        await asyncio.sleep(1)
        assert agent.condition("Ready")["status"] == "True"


async def test_settled_pod_causes_no_requests() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod())
        await agent.until_ready()
        await asyncio.sleep(15)
        before = len(server.requests)
        await asyncio.sleep(600)
        assert len(server.requests) == before


async def test_server_away_loses_nothing_and_restarts_nothing() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        uid = server.put("pods", api_pod())["metadata"]["uid"]
        await agent.until_ready()
        before = set(agent.runtime.containers)
        server.down = True
        agent.runtime.kill(agent.runtime.container("main").id, code=1)
        await agent.until(lambda: "main" in agent.runtime.running(uid))
        await asyncio.sleep(90)
        server.down = False
        await agent.until(lambda: (agent.seen() or {})["status"]["containerStatuses"][0]["restartCount"] == 1)
        assert len(set(agent.runtime.containers) - before) == 1


async def test_restarted_agent_changes_nothing_about_a_running_pod() -> None:
    server, node = FakeAPIServer(), Node()
    async with running(server, node) as agent:
        server.put("pods", api_pod())
        await agent.until_ready()
        await asyncio.sleep(15)
        before, containers = agent.seen(), set(node.runtime.containers)
    async with running(server, node) as agent:
        await asyncio.sleep(60)
        assert agent.seen() == before
        assert set(node.runtime.containers) == containers


async def test_nothing_is_cleaned_up_before_the_server_has_told_its_pods() -> None:
    # behaviours.md §1: "All sources must be ready before pod directories, unknown containers, cgroups or sandboxes are
    # removed."
    server, node = FakeAPIServer(), Node()
    async with running(server, node) as agent:
        uid = server.put("pods", api_pod())["metadata"]["uid"]
        await agent.until_ready()
    server.down = True
    async with running(server, node) as agent:
        await asyncio.sleep(300)
        assert not agent.desired.ready()
        assert node.runtime.running(uid)


async def test_pod_with_a_finalizer_is_deleted_once_and_not_over_and_over() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        pod = api_pod()
        pod["metadata"]["finalizers"] = ["example.com/keep"]
        server.put("pods", pod)
        await agent.until_ready()
        server.delete_pod("default", "web", 1)
        await asyncio.sleep(120)
        assert agent.seen() is not None
        assert server.count("DELETE") == 1


async def test_book_keeping_of_the_server_is_not_kept_in_memory() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        pod = api_pod()
        pod["metadata"]["managedFields"] = [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]
        server.put("pods", pod)
        await agent.until_ready()
        (kept,) = agent.desired.all()
        assert kept.metadata.managed_fields == ()
