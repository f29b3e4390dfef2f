"""Claims of pods are prepared and given back, over real gRPC, with drivers that fail in every way."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from glasslet.api.pod import Pod
from glasslet.dra import driver_calls
from glasslet.dra._generated import dra_pb2 as messages
from glasslet.exchange.claims import DeviceClaimProblem
from glasslet.kubeapi.errors import Unavailable
from tests.component.dra_world import GPU, DRAWorld, claimed_pod, dra_world, driver_in, put_claim
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.dra_driver import PREPARE, UNPREPARE

NIC = "nic.example"


async def prepares(world: DRAWorld, it: Pod) -> tuple[str, ...]:
    """The CDI names that the container gets."""
    await world.claims.prepare(it)
    return world.claims.cdi_ids(it, it.spec.containers[0])


async def fails(world: DRAWorld, it: Pod) -> str:
    with pytest.raises(DeviceClaimProblem) as caught:
        await world.claims.prepare(it)
    return str(caught.value)


# -- the way in --------------------------------------------------------------------------------------------------------


async def test_a_claim_is_prepared_and_its_devices_are_the_containers(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        put_claim(world.server)
        assert await prepares(world, claimed_pod()) == ("gpu.example/gpu=c1-uid",)
        assert driver.calls == [(PREPARE, ("c1-uid",))]
        assert driver.services == {"v1.DRAPlugin"}
        assert "c1-uid" in world.on_disk()


async def test_a_driver_of_the_year_before_is_called_by_its_own_service(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world, versions=["v1beta1.DRAPlugin"]) as driver:
        put_claim(world.server)
        await world.claims.prepare(claimed_pod())
        assert driver.services == {"v1beta1.DRAPlugin"}


async def test_a_pod_without_claims_asks_nobody(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        it = claimed_pod(container={"name": "main"})
        bare = type(it)(metadata=it.metadata)
        await world.claims.prepare(bare)
        await world.unprepare(bare)
        assert not driver.calls
        assert not world.on_disk()


async def test_all_claims_of_one_driver_are_one_call(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        put_claim(world.server, "c1")
        put_claim(world.server, "c2")
        assert len(await prepares(world, claimed_pod("u1", "c1", "c2"))) == 2
        assert driver.calls == [(PREPARE, ("c1-uid", "c2-uid"))]


async def test_a_claim_of_two_drivers_has_the_devices_of_both(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world), driver_in(world, NIC):
        put_claim(world.server, drivers=(GPU, NIC))
        assert await prepares(world, claimed_pod()) == ("gpu.example/gpu=c1-uid", "nic.example/gpu=c1-uid")


async def test_a_container_gets_the_devices_of_the_request_that_it_names(tmp_path: Path) -> None:
    def three(claim: Any) -> list[messages.Device]:
        return [
            messages.Device(device_name=name, request_names=requests, cdi_device_ids=[f"e/x={name}"])
            for name, requests in (("a", ["gpu"]), ("b", ["other"]), ("c", []))
        ]

    named = {"name": "main", "resources": {"claims": [{"name": "entry-c1", "request": "gpu"}]}}
    async with dra_world(tmp_path) as world, driver_in(world, devices=three):
        put_claim(world.server)
        assert await prepares(world, claimed_pod(container=named)) == ("e/x=a", "e/x=c")


async def test_a_prepared_claim_is_not_prepared_again_for_another_pod_or_sandbox(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        put_claim(world.server, pods=("u1", "u2"))
        await world.claims.prepare(claimed_pod("u1"))
        await world.claims.prepare(claimed_pod("u1"))
        await world.claims.prepare(claimed_pod("u2"))
        assert driver.times(PREPARE) == 1


async def test_two_pods_that_share_a_claim_and_come_at_once_make_one_call(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world, held={PREPARE}) as driver:
        put_claim(world.server, pods=("u1", "u2"))
        first = asyncio.create_task(world.claims.prepare(claimed_pod("u1")))
        await world.until(lambda: driver.calls)
        second = asyncio.create_task(world.claims.prepare(claimed_pod("u2")))
        await world.until(lambda: "work on resource claim default/c1 for another pod" in world.waits())
        driver.go_on.set()
        await asyncio.gather(first, second)
        assert driver.times(PREPARE) == 1


# -- refusals ----------------------------------------------------------------------------------------------------------


async def test_a_driver_that_is_not_registered_is_named_and_nothing_is_noted(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world:
        put_claim(world.server)
        assert await fails(world, claimed_pod()) == (
            "prepare dynamic resources: DRA driver gpu.example is not registered"
        )
        assert not world.claims.book.all()


async def test_a_claim_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        world.server.fail_next(Unavailable, verb="GET")
        assert (await fails(world, claimed_pod())).startswith("prepare dynamic resources: fetch ResourceClaim c1: ")
        assert not driver.calls


async def test_a_claim_that_is_not_reserved_for_the_pod_reaches_no_driver(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        put_claim(world.server, pods=("u2",))
        assert "is not allowed to use ResourceClaim c1 (c1-uid)" in await fails(world, claimed_pod("u1"))
        assert not driver.calls


async def test_a_claim_of_the_same_name_waits_until_the_old_one_is_given_back(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world):
        put_claim(world.server)
        await world.claims.prepare(claimed_pod("u1"))
        world.server.remove("resourceclaims", "default", "c1")
        put_claim(world.server, pods=("u2",), uid="another")
        assert "old ResourceClaim with same name c1 and different UID c1-uid still exists" in await fails(
            world, claimed_pod("u2")
        )
        await world.unprepare(claimed_pod("u1"))
        assert await prepares(world, claimed_pod("u2")) == ("gpu.example/gpu=another",)


async def test_a_runtime_that_would_leave_the_devices_out_starts_no_container(tmp_path: Path) -> None:
    async with dra_world(tmp_path, cdi_problem="containerd 1.6.20 gives containers no CDI devices") as world:
        put_claim(world.server)
        async with driver_in(world, devices=lambda claim: []):
            assert await prepares(world, claimed_pod()) == ()
            await world.unprepare(claimed_pod())
        async with driver_in(world):
            text = "containerd 1.6.20 gives containers no CDI devices: gpu.example/gpu=c1-uid"
            with pytest.raises(DeviceClaimProblem, match=text):
                await prepares(world, claimed_pod())


# -- drivers that fail -------------------------------------------------------------------------------------------------


async def test_the_error_of_a_driver_is_told_with_its_code(tmp_path: Path) -> None:
    failing = {PREPARE: (StatusCode.RESOURCE_EXHAUSTED, "no memory left")}
    async with dra_world(tmp_path) as world, driver_in(world, failing=failing) as driver:
        put_claim(world.server)
        text = await fails(world, claimed_pod())
        assert text == (
            "prepare dynamic resources: NodePrepareResources: rpc error: code = ResourceExhausted desc = no memory left"
        )
        driver.failing = {}
        assert await prepares(world, claimed_pod()) == ("gpu.example/gpu=c1-uid",)


async def test_the_error_of_one_claim_is_told_and_the_others_keep_their_devices(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world, errors={"c2-uid": "it is broken"}):
        put_claim(world.server, "c1")
        put_claim(world.server, "c2")
        text = await fails(world, claimed_pod("u1", "c1", "c2"))
        assert text.endswith("NodePrepareResources failed for ResourceClaim c2: it is broken")
        assert "gpu.example/gpu=c1-uid" in str(world.claims.book.all())


async def test_a_second_answer_takes_the_place_of_the_first(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world), driver_in(world, NIC) as other:
        other.failing = {PREPARE: (StatusCode.INTERNAL, "not now")}
        put_claim(world.server, drivers=(GPU, NIC))
        for _ in range(3):
            await fails(world, claimed_pod())
        other.failing = {}
        assert len(await prepares(world, claimed_pod())) == 2


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (lambda answer: type(answer)(), "NodePrepareResources skipped 1 ResourceClaims"),
        (
            lambda answer: type(answer)(claims={"someone-elses": answer.claims["c1-uid"]}),
            "NodePrepareResources returned result for unknown claim UID someone-elses",
        ),
    ],
)
async def test_a_driver_that_answers_something_else_is_not_believed(tmp_path: Path, lie: Any, words: str) -> None:
    async with dra_world(tmp_path) as world, driver_in(world, answer=lie):
        put_claim(world.server)
        assert (await fails(world, claimed_pod())).endswith(words)


async def test_a_driver_that_never_answers_is_a_named_wait_with_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_calls, "CALL_SECONDS", 0.3)
    async with dra_world(tmp_path) as world, driver_in(world, held={PREPARE}) as driver:
        put_claim(world.server)
        task = asyncio.create_task(fails(world, claimed_pod()))
        await world.until(lambda: driver.calls)
        assert "DRA driver gpu.example: NodePrepareResources of claim default/c1" in world.waits()
        assert "code = DeadlineExceeded" in await task


async def test_a_driver_that_hangs_hurts_only_its_own_pods(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world, held={PREPARE}) as slow, driver_in(world, NIC):
        put_claim(world.server, "c1", pods=("u1",))
        put_claim(world.server, "c2", pods=("u2",), drivers=(NIC,))
        hung = asyncio.create_task(world.claims.prepare(claimed_pod("u1", "c1")))
        await world.until(lambda: slow.calls)
        assert await prepares(world, claimed_pod("u2", "c2")) == ("nic.example/gpu=c2-uid",)
        await world.unprepare(claimed_pod("u2", "c2"))
        assert not hung.done()
        slow.go_on.set()
        await hung


async def test_a_driver_that_dies_in_the_call_is_an_error_and_is_asked_again(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world, held_after={PREPARE}) as driver:
        put_claim(world.server)
        task = asyncio.create_task(fails(world, claimed_pod()))
        await world.until(lambda: driver.prepared)
        assert driver._server is not None
        await driver._server.stop(None)
        assert "code = " in await task
        driver.held_after = set()
        await driver.serve()
        await world.until(lambda: world.plugins.connected(GPU))
        assert await prepares(world, claimed_pod()) == ("gpu.example/gpu=c1-uid",)


async def test_a_driver_that_is_removed_in_the_call_fails_it_and_nothing_else(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world, held={PREPARE}) as driver:
        put_claim(world.server)
        task = asyncio.create_task(fails(world, claimed_pod()))
        await world.until(lambda: driver.calls)
        await driver.unregister()
        assert "the plugin was removed during the call" in await task


async def test_a_pod_that_is_deleted_in_the_call_ends_it(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world, held={PREPARE}) as driver:
        put_claim(world.server)
        task = asyncio.create_task(world.claims.prepare(claimed_pod()))
        await world.until(lambda: driver.calls)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        driver.held = set()
        await world.unprepare(claimed_pod())
        assert driver.times(UNPREPARE) == 1
        assert not world.claims.book.all()


# -- the way out -------------------------------------------------------------------------------------------------------


async def test_a_claim_is_given_back_once_no_pod_uses_it(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        put_claim(world.server, pods=("u1", "u2"))
        for name in ("u1", "u2"):
            await world.claims.prepare(claimed_pod(name))
        await world.unprepare(claimed_pod("u1"))
        assert driver.times(UNPREPARE) == 0
        assert '\\"u1\\"' not in world.on_disk()
        await world.unprepare(claimed_pod("u2"))
        assert (driver.times(UNPREPARE), driver.prepared) == (1, set())
        assert "c1-uid" not in world.on_disk()
        await world.unprepare(claimed_pod("u2"))
        assert driver.times(UNPREPARE) == 1


async def test_a_claim_that_is_gone_from_the_api_server_is_given_back(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        put_claim(world.server)
        await world.claims.prepare(claimed_pod())
        world.server.down = True
        await world.unprepare(claimed_pod())
        assert not driver.prepared


async def test_a_pod_that_never_used_the_claim_does_not_take_it_away(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        put_claim(world.server)
        await world.claims.prepare(claimed_pod("u1"))
        await world.unprepare(claimed_pod("u2"))
        assert driver.prepared == {"c1-uid"}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (
            "failing",
            {UNPREPARE: (StatusCode.UNKNOWN, "no")},
            "NodeUnprepareResources: rpc error: code = Unknown desc = no",
        ),
        ("errors", {"c1-uid": "busy"}, "NodeUnprepareResources failed for ResourceClaim c1: busy"),
        ("answer", lambda answer: type(answer)(), "NodeUnprepareResources skipped 1 ResourceClaims"),
    ],
)
async def test_what_a_driver_does_not_give_back_stays_noted(tmp_path: Path, field: str, value: Any, words: str) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        put_claim(world.server)
        await world.claims.prepare(claimed_pod())
        was = getattr(driver, field)
        setattr(driver, field, value)
        with pytest.raises(DeviceClaimProblem, match=re.escape(f"unprepare dynamic resources: {words}")):
            await world.unprepare(claimed_pod())
        assert "c1-uid" in world.on_disk()
        setattr(driver, field, was)
        await world.unprepare(claimed_pod())
        assert not world.claims.book.all()


async def test_a_driver_that_is_away_when_the_pod_ends_is_waited_for(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world:
        put_claim(world.server)
        async with driver_in(world):
            await world.claims.prepare(claimed_pod())
        await world.until(lambda: not world.plugins.drivers())
        with pytest.raises(DeviceClaimProblem, match=r"unprepare dynamic resources: DRA driver gpu.example is not"):
            await world.unprepare(claimed_pod())
        async with driver_in(world) as driver:
            await world.unprepare(claimed_pod())
            assert driver.times(UNPREPARE) == 1


async def test_a_pod_that_begins_and_one_that_ends_with_the_same_claim_take_turns(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        put_claim(world.server, pods=("u1", "u2"))
        await world.claims.prepare(claimed_pod("u1"))
        driver.held = {UNPREPARE}
        ends = asyncio.create_task(world.unprepare(claimed_pod("u1")))
        await world.until(lambda: driver.times(UNPREPARE))
        begins = asyncio.create_task(prepares(world, claimed_pod("u2")))
        await world.until(lambda: "work on resource claim default/c1 for another pod" in world.waits())
        driver.go_on.set()
        await ends
        assert await begins == ("gpu.example/gpu=c1-uid",)
        assert driver.prepared == {"c1-uid"}
        assert [method for method, _ in driver.calls] == [PREPARE, UNPREPARE, PREPARE]


# -- restarts ----------------------------------------------------------------------------------------------------------


async def test_a_restarted_agent_knows_the_devices_of_running_pods(tmp_path: Path) -> None:
    server = FakeAPIServer()
    put_claim(server)
    async with dra_world(tmp_path, server) as world, driver_in(world):
        await world.claims.prepare(claimed_pod())
    async with dra_world(tmp_path, server) as world:
        it = claimed_pod()
        assert world.claims.cdi_ids(it, it.spec.containers[0]) == ("gpu.example/gpu=c1-uid",)
        async with driver_in(world) as driver:
            assert await prepares(world, it) == ("gpu.example/gpu=c1-uid",)
            assert driver.times(PREPARE) == 1


@pytest.mark.parametrize("moment", ["before the call", "in the call", "after the work", "before the last write"])
@pytest.mark.parametrize("fate", ["the pod comes back", "the pod is gone"])
async def test_an_agent_killed_between_two_steps_of_preparing_loses_nothing(
    tmp_path: Path, moment: str, fate: str
) -> None:
    server = FakeAPIServer()
    put_claim(server)
    async with dra_world(tmp_path, server) as world, driver_in(world) as driver:
        if moment == "before the call":
            world.plugins.choose(GPU).service = "nothing"
        elif moment == "in the call":
            driver.held = {PREPARE}
        elif moment == "after the work":
            driver.held_after = {PREPARE}
        else:
            world.claims._file._written = None
        killed = asyncio.create_task(world.claims.prepare(claimed_pod()))
        if moment == "before the last write":
            await world.until(lambda: driver.prepared)
        elif moment == "before the call":
            await world.until(lambda: killed.done())
        else:
            await world.until(lambda: driver.calls)
        killed.cancel()
        await asyncio.gather(killed, return_exceptions=True)
        left = world.on_disk()
        held = set(driver.prepared)
    assert "c1-uid" in left
    (tmp_path / "dra_manager_state").write_text(left)
    async with dra_world(tmp_path, server) as world, driver_in(world, prepared=held) as driver:
        if fate == "the pod comes back":
            assert await prepares(world, claimed_pod()) == ("gpu.example/gpu=c1-uid",)
            assert driver.prepared == {"c1-uid"}
        else:
            await world.forgotten.look()
            assert not driver.prepared
            assert not world.claims.book.all()


async def test_an_agent_killed_while_giving_back_gives_back_again(tmp_path: Path) -> None:
    server = FakeAPIServer()
    put_claim(server)
    async with dra_world(tmp_path, server) as world, driver_in(world) as driver:
        await world.claims.prepare(claimed_pod())
        driver.held_after = {UNPREPARE}
        killed = asyncio.create_task(world.unprepare(claimed_pod()))
        await world.until(lambda: not driver.prepared)
        left = world.on_disk()
        killed.cancel()
        await asyncio.gather(killed, return_exceptions=True)
    (tmp_path / "dra_manager_state").write_text(left)
    async with dra_world(tmp_path, server) as world, driver_in(world) as driver:
        await world.forgotten.look()
        assert driver.times(UNPREPARE) == 1
        assert not world.claims.book.all()


async def test_a_damaged_file_is_moved_aside_and_said(tmp_path: Path) -> None:
    (tmp_path / "dra_manager_state").write_text("rubbish")
    async with dra_world(tmp_path) as world:
        assert "claims that were prepared are unknown" in world.findings()[0]
        assert not world.claims.book.all()


async def test_without_a_note_on_disk_no_driver_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("glasslet.dra.claim_file.write_atomically", full)
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        put_claim(world.server)
        assert "checkpoint ResourceClaim cache: [Errno 28]" in await fails(world, claimed_pod())
        assert not driver.calls
        assert "a restarted agent would not know which claims are prepared" in world.findings()[0]


# -- pods that are gone ------------------------------------------------------------------------------------------------


async def test_claims_of_gone_pods_are_given_back_and_those_of_others_stay(tmp_path: Path) -> None:
    # behaviours.md §24: "unprepared after all containers stopped, checked each 60 s"
    async with dra_world(tmp_path) as world, driver_in(world) as driver, driver_in(world, NIC) as hung:
        put_claim(world.server, "c1", pods=("u1",))
        put_claim(world.server, "c2", pods=("u2",))
        put_claim(world.server, "c3", pods=("u3",), drivers=(NIC,))
        for uid, name in (("u1", "c1"), ("u2", "c2"), ("u3", "c3")):
            await world.claims.prepare(claimed_pod(uid, name))
        world.alive = {"u2"}
        hung.failing = {UNPREPARE: (StatusCode.UNAVAILABLE, "later")}
        await world.forgotten.look()
        assert driver.prepared == {"c2-uid"}
        assert "resource claims default/c3 of a pod that is gone (u3): DRA driver nic.example" in world.findings()[0]
        hung.failing = {}
        await world.forgotten.look()
        assert not hung.prepared
        assert not world.findings()


# -- metrics -----------------------------------------------------------------------------------------------------------


async def test_work_calls_and_claims_are_counted(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world), driver_in(world, NIC):
        put_claim(world.server, drivers=(GPU, NIC))
        assert world.sample("dra_resource_claims_in_use", "<any>") == 0
        await world.claims.prepare(claimed_pod())
        assert world.sample("dra_resource_claims_in_use", "<any>") == 1
        assert world.sample("dra_resource_claims_in_use", NIC) == 1
        await world.unprepare(claimed_pod())
        assert world.sample("dra_resource_claims_in_use", "<any>") == 0
        assert world.claims.book.in_use() == (0, {})
        for what in ("PrepareResources", "UnprepareResources"):
            assert world.sample("dra_operations_duration_seconds_count", what, "false") == 1
        path = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
        assert world.sample("dra_grpc_operations_duration_seconds_count", GPU, "OK", path) == 1


async def test_monitoring_agents_are_told_what_a_container_has(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world):
        put_claim(world.server)
        it = claimed_pod()
        await world.claims.prepare(it)
        [claim] = world.claims.claims_of(it, it.spec.containers[0])
        assert (claim.namespace, claim.name) == ("default", "c1")
        assert [(one.driver, one.pool, one.device) for one in claim.devices] == [(GPU, "pool", "gpu-0")]
