"""Every whole number of a pod at both ends of its range: the pod can be stopped, and hurts no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import msgspec.inspect as inspect
import pytest

from glasslet.admission.chain import PodAdmission
from glasslet.api.codec import convert
from glasslet.api.node import Node as APINode
from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.api.pod import Pod
from glasslet.exchange.admission import Admitted, Rejected
from glasslet.runtime.cri.calls import refusing_unencodable
from glasslet.runtime.cri.encode_container import encode_container
from glasslet.runtime.cri.encode_sandbox import encode_sandbox
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.spec import ContainerSpec, SandboxSpec
from tests.builders.pod import IMAGE, deleted, pod
from tests.component.api_agent import ROOM
from tests.component.pod_agent import Node
from tests.component.probed_agent import probed_agent
from tests.fakes.probing import FAIL, FakeProbing
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.looptime

MIN, MAX = -(2**63), 2**63 - 1
ENDS = {"min": MIN, "max": MAX}
GRACE = ("spec.terminationGracePeriodSeconds", "metadata.deletionGracePeriodSeconds")
NOT_OF_THE_AGENT = ("metadata.managedFields", "spec.initContainers", "spec.ephemeralContainers", "claimTemplate")
"""Init and ephemeral containers are made of the same type as regular ones."""

Step = tuple[str, inspect.Type]


def _numbers(kind: inspect.Type, path: str) -> Iterator[str]:
    """The paths of all whole numbers at and below this type; `[]` is the first item of a list."""
    match kind:
        case inspect.IntType():
            yield path
        case inspect.UnionType():
            for one in kind.types:
                yield from _numbers(one, path)
        case inspect.ListType() | inspect.VarTupleType():
            yield from _numbers(kind.item_type, f"{path}[]")
        case inspect.StructType():
            for field in kind.fields:
                below = f"{path}.{field.encode_name}" if path else field.encode_name
                if below.startswith(("status", *NOT_OF_THE_AGENT)) or "volumeClaimTemplate" in below:
                    continue
                yield from _numbers(field.type, below)


PATHS = sorted(set(_numbers(inspect.type_info(Pod), "")))


def _plain(kind: inspect.Type) -> Any:
    """The least that a value of this type needs."""
    match kind:
        case inspect.UnionType():
            return _plain(kind.types[0])
        case inspect.StructType():
            return {field.encode_name: _plain(field.type) for field in kind.fields if field.required}
        case inspect.ListType() | inspect.VarTupleType():
            return []
        case inspect.IntType():
            return 1
        case inspect.DictType():
            return {}
        case _:
            return "x"


def _put(into: Any, kind: inspect.Type, path: list[str], value: int) -> Any:
    """`into` with the number set at the path; what is missing on the way is made."""
    if isinstance(kind, inspect.UnionType):
        kind = next(
            one for one in kind.types if isinstance(one, inspect.StructType | inspect.VarTupleType | inspect.IntType)
        )
    if not path:
        return value
    if path[0] == "[]":
        assert isinstance(kind, inspect.ListType | inspect.VarTupleType)
        first = into[0] if into else _plain(kind.item_type)
        return [_put(first, kind.item_type, path[1:], value)]
    assert isinstance(kind, inspect.StructType)
    field = next(one for one in kind.fields if one.encode_name == path[0])
    return {**into, path[0]: _put(into.get(path[0], _plain(field.type)), field.type, path[1:], value)}


def hostile(path: str, value: int, name: str = "hostile") -> dict[str, Any]:
    """A pod from the API server with this number."""
    plain: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [{"name": "main", "image": IMAGE, "imagePullPolicy": "IfNotPresent"}]},
        "status": {"phase": "Pending"},
    }
    found: dict[str, Any] = _put(plain, inspect.type_info(Pod), path.replace("[]", ".[]").split("."), value)
    for container in found["spec"]["containers"]:
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            if probe in container and not container[probe].keys() & {"httpGet", "tcpSocket", "grpc"}:
                container[probe]["exec"] = {"command": ["true"]}
    if "deletionGracePeriodSeconds" in path:
        found["metadata"]["deletionTimestamp"] = "2025-12-31T00:00:00Z"
    return found


class Encoding(FakeRuntime):
    """A runtime whose requests have to be encoded, as the real one's."""

    async def run_sandbox(self, spec: SandboxSpec) -> SandboxID:
        with refusing_unencodable(Verb.RUN_POD_SANDBOX):
            encode_sandbox(spec)
        return await super().run_sandbox(spec)

    async def create_container(self, sandbox: SandboxID, spec: ContainerSpec, pod: SandboxSpec) -> ContainerID:
        with refusing_unencodable(Verb.CREATE_CONTAINER):
            encode_container(spec)
        return await super().create_container(sandbox, spec, pod)

    async def stop_container(self, container: ContainerID, grace_seconds: int) -> None:
        # The runtime counts the grace in nanoseconds, 64 bits of them.
        assert 0 <= grace_seconds * 10**9 <= MAX
        await super().stop_container(container, grace_seconds)


def admit(one: Pod, other: Pod) -> Admitted | Rejected:
    """Admission of a pod beside another."""
    node = convert({"metadata": {"name": "n1"}, "status": {"allocatable": ROOM}}, APINode)
    return PodAdmission(node=lambda: node, allocatable=lambda: node.status.allocatable)(one, [other])


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged as an error: above all tasks that raised."""
    return [str(record.exc_info or record.message) for record in caplog.records if record.levelno >= logging.ERROR]


def test_the_numbers_of_a_pod_are_found() -> None:
    assert {*GRACE, "spec.activeDeadlineSeconds", "spec.tolerations[].tolerationSeconds"} <= set(PATHS)
    assert "spec.containers[].lifecycle.preStop.sleep.seconds" in PATHS
    assert len(PATHS) > 60


@pytest.mark.parametrize("end", ENDS)
async def test_pods_with_extreme_numbers_are_stopped_and_hurt_no_other(
    end: str, caplog: pytest.LogCaptureFixture
) -> None:
    hostiles = [convert(hostile(path, ENDS[end], f"hostile-{n}"), Pod) for n, path in enumerate(PATHS)]
    neighbour = pod(uid="neighbour", name="neighbour")
    for one in hostiles:
        assert isinstance(admit(one, neighbour), Admitted | Rejected)
        assert isinstance(admit(neighbour, one), Admitted | Rejected)
    node = Node(runtime=Encoding())
    async with probed_agent(FakeProbing(answer=lambda name, _kind, _n: FAIL), node=node) as agent:
        agent.add(neighbour)
        for one in hostiles:
            agent.add(one)
        await asyncio.sleep(60)
        # With a grace of 5 s, whatever they say themselves.
        for one in hostiles:
            agent.delete(deleted(one, grace=5))
            agent.workers.kill(PodUID(one.metadata.uid), grace=5)
            agent.remove(one)
        await asyncio.sleep(60)
        left = [path for n, path in enumerate(PATHS) if agent.census.knows(PodUID(f"hostile-{n}"))]
        assert left == []
        assert agent.runtime.running("neighbour") == ["main"]
        assert agent.container("main", "neighbour").restart_count == 0
    assert errors(caplog) == []


@pytest.mark.parametrize("grace", [10**12, MAX, MIN])
async def test_a_container_gets_term_whatever_the_grace_of_its_pod(grace: int) -> None:
    one = convert(hostile("spec.terminationGracePeriodSeconds", grace), Pod)
    node = Node(runtime=Encoding())
    async with probed_agent(FakeProbing(), node=node) as agent:
        agent.add(one)
        await agent.until_running("main", uid="hostile")
        agent.delete(deleted(one))
        await agent.until_finished("hostile")
        ended = agent.container("main", "hostile").state.terminated
        assert ended is not None
        assert agent.status("hostile").phase in ("Succeeded", "Failed")
