"""CPUs and memory of NUMA nodes for pods: admission, refusals, restarts, what running containers are told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasslet.api.container import ResourceRequirements
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.cli.node_command import resources_text
from glasslet.exchange.admission import Rejected
from glasslet.exchange.numa import NUMAHint
from glasslet.glass.verdicts.rejections import MISFIT
from glasslet.host.topology import read_topology
from glasslet.managers.hint_merge import MergeRules
from glasslet.managers.resources_view import ResourcesView
from glasslet.record.events import Decided
from tests.builders.pod import container, pod
from tests.component.manager_world import MI, ManagerWorld, guaranteed, sized


def decisions(world: ManagerWorld) -> list[Decided]:
    """All decisions in the record, in order."""
    record = world.record.of(None)
    return [event for event in record.events if isinstance(event, Decided)] if record is not None else []


LOCALITY = Rejected(reason="TopologyAffinityError", message="Resources cannot be allocated with Topology locality")


async def _world(folder: Path, **settings_: object) -> ManagerWorld:
    return await ManagerWorld(folder, **settings_).start()  # type: ignore[arg-type]


async def test_a_guaranteed_pod_gets_whole_cpus_and_memory_of_one_node(tmp_path: Path) -> None:
    # behaviours.md §31: "CPU static policy: exclusive CPUs for containers of Guaranteed pods with whole-CPU requests"
    world = await _world(tmp_path)
    assert world.admit(guaranteed("a", "2")) is None
    # "8 CPUs, 4 cores {i,i+4}": the node with fewer free CPUs is filled first.
    assert world.own("a") == "1,9"
    share = await world.managers.share(world.living["a"], world.living["a"].spec.containers[0])
    assert (share.cpus, share.memory_nodes, share.no_quota) == ("1,9", "0", True)
    assert world.managers.without_quota("a")
    assert world.managers.without_quota("a", "main")


async def test_a_pod_with_resources_as_a_whole_gets_neither(tmp_path: Path) -> None:
    # behaviours.md §31: "(not with pod-level resources) get NUMA sets as cpuset_mems"
    world = await _world(tmp_path, policy="single-numa-node")
    whole = ResourceRequirements(requests={"cpu": Quantity(2), "memory": Quantity(MI)}, limits={"cpu": Quantity(2)})
    it = pod(sized("main", "2"), uid="a", resources=whole)
    assert world.admit(it) is None
    share = await world.managers.share(it, it.spec.containers[0])
    assert (share.cpus, share.memory_nodes, share.no_quota) == ("0-15", "", False)
    # With the gate PodLevelResources off they would be 40 CPUs, and more than there are.
    assert world.admit(pod(sized("main", "40"), uid="b", resources=whole)) is None


async def test_a_container_that_starts_again_has_the_same_cpus(tmp_path: Path) -> None:
    # behaviours.md §31: "exclusive sets survive container restarts"
    world = await _world(tmp_path)
    it = guaranteed("a", "2")
    world.admit(it)
    first = await world.managers.share(it, it.spec.containers[0])
    world.running["a"] = []
    world.admit(guaranteed("b", "2"))
    world.topology.tidy(())
    assert await world.managers.share(it, it.spec.containers[0]) == first


async def test_other_pods_share_the_rest(tmp_path: Path) -> None:
    # behaviours.md §31: "shared pool = the rest" and "cpuset sent at creation for every container, shared pool too"
    world = await _world(tmp_path)
    world.admit(guaranteed("a", "2"))
    for uid, it in (("fraction", guaranteed("fraction", "1500m")), ("quiet", pod(container(), uid="quiet"))):
        assert world.admit(it) is None
        share = await world.managers.share(it, it.spec.containers[0])
        assert (share.cpus, share.no_quota) == ("0,2-8,10-15", False)
        assert not world.managers.without_quota(uid)


async def test_with_policy_none_nothing_is_given_out(tmp_path: Path) -> None:
    world = await _world(tmp_path, static=False, policy="none")
    it = guaranteed("a", "2")
    assert world.admit(it) is None
    share = await world.managers.share(it, it.spec.containers[0])
    assert (share.cpus, share.memory_nodes, share.no_quota) == ("", "", False)
    files = {path.name: path.read_text() for path in tmp_path.glob("*_state")}
    assert files == {
        "cpu_manager_state": '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}',
        "memory_manager_state": '{"policyName":"None","machineState":{},"checksum":4236770233}',
    }


async def test_too_few_cpus_refuse_the_pod_and_give_back_what_it_got(tmp_path: Path) -> None:
    world = await _world(tmp_path, policy="none")
    before = world.cpus.state
    it = pod(sized("one", "8"), sized("two", "8"), uid="a")
    assert world.admit(it) == Rejected(
        reason="UnexpectedAdmissionError",
        message="Allocate failed due to not enough cpus available to satisfy request: requested=8, available=6, "
        "which is unexpected",
    )
    assert world.cpus.state == before
    assert world.sample("kubelet_cpu_manager_pinning_errors_total") == "1"


@pytest.mark.parametrize(
    ("policy", "refused"), [("best-effort", None), ("restricted", LOCALITY), ("single-numa-node", LOCALITY)]
)
async def test_a_pod_over_two_nodes_is_the_policys_choice(
    tmp_path: Path, policy: str, refused: Rejected | None
) -> None:
    world = await _world(tmp_path, policy=policy)
    world.admit(guaranteed("a", "4"))
    world.admit(guaranteed("b", "5"))
    # 2 CPUs are left on node 0, 3 on node 1; one node would do for 4 if it were free.
    assert world.admit(guaranteed("c", "4")) == refused
    assert (world.own("c") == "") == (refused is not None)


async def test_scope_pod_takes_all_containers_together(tmp_path: Path) -> None:
    two = pod(sized("one", "4"), sized("two", "4"), uid="a")
    by_container = await _world(tmp_path / "container", policy="single-numa-node")
    assert by_container.admit(two) is None
    by_pod = await _world(tmp_path / "pod", policy="single-numa-node", scope="pod")
    assert by_pod.admit(two) is None
    layout = by_pod.cpus.policy.layout if by_pod.cpus.policy is not None else None
    assert layout is not None
    assert layout.nodes_of(by_pod.cpus.own("a", "one") | by_pod.cpus.own("a", "two")) == {1}
    assert by_pod.admit(guaranteed("b", "7")) == LOCALITY


async def test_devices_draw_cpus_and_memory_to_their_node(tmp_path: Path) -> None:
    world = await _world(tmp_path, policy="single-numa-node")
    world.devices.said = {"example.com/gpu": [NUMAHint(2, True), NUMAHint(3, False)]}
    it = guaranteed("a", "2")
    assert world.admit(it) is None
    assert world.devices.masks == {"main": 2}
    assert world.own("a") == "4,12"
    assert world.memory.nodes("a", "main") == "1"
    world.devices.said = {"example.com/gpu": []}
    assert world.admit(guaranteed("b", "2")) == LOCALITY


async def test_an_init_containers_cpus_are_used_again(tmp_path: Path) -> None:
    world = await _world(tmp_path)
    init = (sized("init", "4"), sized("side", "2", restart_policy="Always"))
    assert world.admit(guaranteed("a", "2", init=init)) is None
    assert world.own("a", "init") == "1-2,9-10"
    # The sidecar takes a core of them and keeps it.
    assert (world.own("a", "side"), world.own("a")) == ("1,9", "2,10")


async def test_a_restarted_agent_goes_on_and_asks_no_pod_again(tmp_path: Path) -> None:
    first = await _world(tmp_path)
    # Four CPUs over two nodes, which a stricter policy would refuse.
    for uid, count in (("a", "5"), ("b", "7"), ("c", "2")):
        assert first.admit(guaranteed(uid, count)) is None
    await first.cpus.save()
    await first.memory.save()
    second = await _world(tmp_path, policy="single-numa-node")
    assert second.cpus.state == first.cpus.state
    assert second.memory.state == first.memory.state
    assert second.admit(guaranteed("c", "2")) is None
    assert second.own("c") == first.own("c")
    assert second.record.findings() == []


async def test_nothing_is_freed_before_all_pods_are_known(tmp_path: Path) -> None:
    first = await _world(tmp_path)
    first.admit(guaranteed("a", "2"))
    await first.cpus.save()
    second = await _world(tmp_path)
    second.pods_known = False
    second.admit(guaranteed("b", "2"))
    assert second.own("a") == "1,9"
    second.pods_known = True
    second.admit(guaranteed("c", "2"))
    assert second.own("a") == ""


async def test_a_state_that_does_not_fit_costs_what_does_not_fit(tmp_path: Path) -> None:
    first = await _world(tmp_path)
    first.admit(guaranteed("a", "2"))
    first.admit(guaranteed("b", "2"))
    await first.cpus.save()
    # The CPUs of the first pod are the system's now.
    second = await _world(tmp_path, reserved="0-1,8-9")
    assert (second.own("a"), second.own("b")) == ("", first.own("b"))
    (finding,) = second.record.findings()
    assert 'not all reserved cpus: "0-1,8-9" are present' in finding
    assert "1 containers lost their CPUs" in finding


async def test_a_damaged_state_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "cpu_manager_state").write_text('{"policyName":"static","defaultCpuSet":"0","checksum":5}')
    world = await _world(tmp_path)
    assert world.cpus.state.shared == frozenset(range(16))
    (finding,) = world.record.findings()
    assert "checkpoint is corrupted" in finding
    assert (tmp_path / "cpu_manager_state.damaged").exists()


async def test_running_containers_make_room_and_get_it_back(tmp_path: Path) -> None:
    world = await _world(tmp_path)
    world.admit(pod(container(), uid="quiet"))
    await world.reconciler.reconcile()
    assert world.told == {"quiet/main": "0-15"}
    world.admit(guaranteed("a", "2"))
    await world.reconciler.reconcile()
    assert world.told == {"quiet/main": "0,2-8,10-15", "a/main": "1,9"}
    world.end("a")
    world.topology.tidy(())
    world.told.clear()
    await world.reconciler.reconcile()
    assert world.told == {"quiet/main": "0-15"}


async def test_what_the_runtime_refuses_is_told_again(tmp_path: Path) -> None:
    world = await _world(tmp_path)
    world.admit(pod(container(), uid="quiet"))
    world.refuses = {"quiet/main"}
    await world.reconciler.reconcile()
    assert world.told == {}
    world.refuses = set()
    await world.reconciler.reconcile()
    assert world.told == {"quiet/main": "0-15"}


async def test_each_change_is_told_at_once(tmp_path: Path) -> None:
    # behaviours.md §31: "reconciled every cpuManagerReconcilePeriod (10 s) with UpdateContainerResources"
    world = await _world(tmp_path)
    world.admit(pod(container(), uid="quiet"))
    running = asyncio.create_task(world.reconciler.run())
    while not world.told:
        await asyncio.sleep(0)
    began = asyncio.get_running_loop().time()
    world.admit(guaranteed("a", "2"))
    while "a/main" not in world.told:
        await asyncio.sleep(0)
    assert asyncio.get_running_loop().time() - began < 1
    running.cancel()


async def test_metrics_count_what_is_given_out(tmp_path: Path) -> None:
    world = await _world(tmp_path, policy="single-numa-node")
    world.admit(guaranteed("a", "2"))
    names = {
        "kubelet_cpu_manager_shared_pool_size_millicores": "12000",
        "kubelet_cpu_manager_exclusive_cpu_allocation_count": "2",
        'kubelet_cpu_manager_allocation_per_numa{numa_node="0"}': "2",
        "kubelet_memory_manager_pinning_requests_total": "1",
        "kubelet_topology_manager_admission_requests_total": "1",
        "kubelet_topology_manager_admission_errors_total": "0",
        'kubelet_container_aligned_compute_resources_count{scope="container",boundary="numa_node"}': "1",
    }
    assert {name: world.sample(name) for name in names} == names


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6), st.booleans()), max_size=14), reuse=st.booleans())
def test_no_cpu_is_ever_two_pods(tmp_path_factory: pytest.TempPathFactory, steps: object, reuse: bool) -> None:
    """Pods come and go, the agent restarts: no CPU is given twice, none is lost."""
    folder = tmp_path_factory.mktemp("managers")

    async def live() -> None:
        world = await _world(folder, policy="best-effort")
        for number, count, restart in steps:  # type: ignore[attr-defined]
            uid = f"p{number}"
            if uid in world.living:
                world.end(uid)
                world.topology.tidy(())
            elif count:
                init = (sized("init", str(count)),) if reuse else ()
                world.admit(guaranteed(uid, str(count), init=init))
            if restart:
                await world.cpus.save()
                await world.memory.save()
                again = await _world(folder, policy="best-effort")
                again.living, world = world.living, again
            assert world.cpus.policy is not None
            assert world.cpus.policy.problem(world.cpus.state) == ""
            assert set(world.cpus.state.entries) <= set(world.living)
            owned = [cpus for one in world.cpus.state.entries.values() for cpus in [frozenset().union(*one.values())]]
            assert sum(map(len, owned)) == len(frozenset().union(*owned))

    asyncio.run(live())


async def test_why_names_what_did_not_fit_on_which_node(tmp_path: Path) -> None:
    world = await _world(tmp_path, policy="single-numa-node")
    for uid, count in (("a", "4"), ("b", "5")):
        world.admit(guaranteed(uid, count))
    assert world.admit(guaranteed("c", "4", "2Gi")) == LOCALITY
    told = [str(dict(event.inputs)) for event in decisions(world) if event.what == "does not fit"]
    assert len(told) == 1
    assert "topology policy single-numa-node finds no NUMA nodes for all of it" in told[0]
    assert "cpu fits only on NUMA nodes 0, 1, more nodes than it needs (free: 2 on node 0, 3 on node 1)" in told[0]
    assert "memory fits on NUMA node 0 or NUMA node 1" in told[0]


@pytest.mark.parametrize(
    ("options", "pod_", "words"),
    [
        ((), guaranteed("c", "4"), "container main asks for 4 CPUs of its own (free: 0 on node 0, 3 on node 1)"),
        (
            ("full-pcpus-only",),
            guaranteed("c", "3"),
            (
                "container main asks for 3 CPUs of its own (free: 0 on node 0, 2 on node 1); "
                "with full-pcpus-only a container gets whole cores of 2 threads"
            ),
        ),
        (
            (),
            guaranteed("c", "1", "40Gi"),
            (
                "container main asks for 40960 MiB of memory (free: 16000 MiB on node 0, 16384 MiB on node 1); "
                "a node that serves a pod alone is not joined with others"
            ),
        ),
    ],
)
async def test_why_names_what_is_left_where_nothing_is_aligned(
    tmp_path: Path, options: tuple[str, ...], pod_: Pod, words: str
) -> None:
    world = await _world(tmp_path, policy="none", cpu_options=options)
    for uid, count in (("a", "6"), ("b", "6" if options else "5")):
        assert world.admit(guaranteed(uid, count)) is None
    assert world.admit(pod_) is not None
    told = [dict(event.inputs)["because"] for event in decisions(world) if event.what == MISFIT]
    assert told == [words]


async def test_each_assignment_has_its_reason_in_the_record(tmp_path: Path) -> None:
    world = await _world(tmp_path, policy="single-numa-node")
    world.admit(guaranteed("a", "2"))
    told = {event.what: dict(event.inputs) for event in decisions(world)}
    assert told["CPUs allocated"] == {
        "cpus": "1,9",
        "nodes": "0",
        "because": "2 whole CPUs in a Guaranteed pod; NUMA node 0 chosen",
    }
    assert told["NUMA nodes chosen"]["nodes"] == "NUMA node 0"
    assert told["memory allocated"]["nodes"] == "0"


async def test_the_drawing_shows_who_has_which_core(tmp_path: Path) -> None:
    world = await _world(tmp_path)
    world.admit(guaranteed("a", "2", "64Mi", init=(sized("init", "2"),)))
    topology = read_topology(str(tmp_path / "two-sockets"))
    view = ResourcesView(
        topology=topology,
        managers=world.managers,
        rules=MergeRules(policy="best-effort", nodes=topology.nodes),
        scope="container",
        pods=world.living.values,
    )
    assert resources_text(view()).splitlines() == [
        "policies: CPU static, memory Static, topology best-effort (scope container)",
        "socket 0",
        "  NUMA node 0",
        "    hugepages-2Mi: 0 bytes given out, 128 MiB free, 0 bytes reserved, 128 MiB in all",
        "    memory: 64 MiB given out, 16 GiB free, 128 MiB reserved, 16 GiB in all",
        "    core 0: CPU 0 reserved, shared; CPU 8 reserved, shared",
        "    core 1: CPU 1 of default/a/init, default/a/main; CPU 9 of default/a/init, default/a/main",
        "    shared by all other containers: CPUs 2-3,10-11",
        "socket 1",
        "  NUMA node 1",
        "    memory: 0 bytes given out, 16 GiB free, 0 bytes reserved, 16 GiB in all",
        "    shared by all other containers: CPUs 4-7,12-15",
        "memory of containers",
        "  default/a/main: 64 MiB of memory from NUMA node 0",
    ]
