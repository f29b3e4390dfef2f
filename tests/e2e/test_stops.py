"""Pods of a real API server on a real runtime are held at each place of their way, while the node stays Ready.

Each hold lasts a few seconds, and some pods are held at once. `scripts/test-stops` runs the long form:
GLASSLET_TEST_HOLD_SECONDS=600, as long as a person needs, and GLASSLET_TEST_HELD_PODS=200.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from glasslet.answers.pods import PodsAnswer
from glasslet.answers.stops import BreakRequest, BreakRow, BreaksAnswer, InspectAnswer, ReleasedAnswer, StepAnswer
from glasslet.cli.agent_client import AgentClient
from glasslet.stops.stops import MOST_BREAKS
from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import api_pod, wait_until
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import BUSYBOX, PrivateContainerd
from tests.fakes.control_plane import ControlPlane, is_ready

HOLD_SECONDS = float(os.environ.get("GLASSLET_TEST_HOLD_SECONDS", "5"))
HELD_PODS = int(os.environ.get("GLASSLET_TEST_HELD_PODS", "24"))
OTHERS = 30
pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600 + 3 * HOLD_SECONDS + 6 * HELD_PODS)]

STARTS = (
    *("seen", "merged", "woken", "admitted", "plan", "planned", "cgroup", "volumes", "sandbox", "image", "init"),
    *("created", "started", "probes", "status", "cri:RunPodSandbox", "cri:CreateContainer", "cri:StartContainer"),
)
ENDS = ("stopping", "gone")


def client(agent: Agent) -> AgentClient:
    return AgentClient(agent.root)


def set_break(agent: Agent, at: str, pod: str, **more: Any) -> BreakRow:
    wanted = BreakRequest(at=at, pod=f"default/{pod}", **{"hold_seconds": HOLD_SECONDS + 300, **more})
    return client(agent).post("/breaks", wanted, BreakRow)


def held_at(agent: Agent) -> dict[str, str]:
    """The place at which each held pod is."""
    rows = client(agent).get("/pods", PodsAnswer).pods
    return {row.name: row.hold.at for row in rows if row.hold is not None}


def until_held(agent: Agent, *pods: str) -> None:
    wait_until(lambda: set(pods) <= set(held_at(agent)))


def glasslet(agent: Agent, *words: str, stdin: str = "") -> str:
    """The output of the command line tool."""
    program = [str(Path(sys.executable).with_name("glasslet")), "--root-dir", str(agent.root), *words]
    done = subprocess.run(program, input=stdin.encode(), capture_output=True, timeout=120)
    return (done.stdout + done.stderr).decode()


def name_of(place: str) -> str:
    return f"at-{place.replace(':', '-').lower()}"


def probed(name: str, *, period: int = 1) -> dict[str, Any]:
    """A pod with an init container and a readiness probe. `period` in seconds."""
    pod = api_pod(name)
    main = pod["spec"]["containers"][0]
    main["readinessProbe"] = {"exec": {"command": ["true"]}, "periodSeconds": period}
    prepare = {"name": "prepare", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", "command": ["true"]}
    pod["spec"]["initContainers"] = [prepare]
    return pod


@contextmanager
def node_watched(controlplane: ControlPlane) -> Iterator[list[str]]:
    """What the API server said of the node's Ready while the body ran."""
    said: list[str] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(1.0):
            node = controlplane.get("node", NODE) or {}
            conditions = node.get("status", {}).get("conditions", [])
            said.append(next((one["status"] for one in conditions if one["type"] == "Ready"), "absent"))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield said
    finally:
        over.set()
        thread.join()


def test_one_pod_is_held_at_each_place_and_30_others_start_and_stop_meanwhile(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    for place in STARTS:
        set_break(cluster_agent, place, name_of(place))
    leaving = [name_of(place) for place in ENDS]
    controlplane.apply(*(probed(name) for name in leaving))
    for name in leaving:
        controlplane.wait_for(name, is_ready)
    for place in ENDS:
        set_break(cluster_agent, place, name_of(place))
    with node_watched(controlplane) as said:
        began = time.monotonic()
        controlplane.apply(*(probed(name_of(place)) for place in STARTS))
        controlplane.kubectl("delete", "pod", *leaving, "--wait=false")
        until_held(cluster_agent, *(name_of(place) for place in STARTS))
        wait_until(lambda: client(cluster_agent).get("/breaks", BreaksAnswer).breaks[-2].holding)
        others = [f"other-{number}" for number in range(OTHERS)]
        controlplane.apply(*(api_pod(name) for name in others))
        for name in others:
            controlplane.wait_for(name, is_ready, seconds=240)
        controlplane.kubectl("delete", "pod", *others, seconds=240)
        time.sleep(max(0.0, HOLD_SECONDS - (time.monotonic() - began)))
        held = held_at(cluster_agent)
        assert {name: held.get(name) for name in map(name_of, STARTS)} == {name_of(place): place for place in STARTS}
        assert not any(is_ready(controlplane.get("pod", name_of(place))) for place in STARTS)
        findings = [finding for pod in held for finding in described(cluster_agent, pod)["findings"]]
        assert findings == []
        client(cluster_agent).delete("/breaks", ReleasedAnswer)
        for place in STARTS:
            controlplane.wait_for(name_of(place), is_ready, seconds=240)
        for name in leaving:
            controlplane.wait_for(name, lambda found: found is None)
    assert set(said) == {"True"}


def described(agent: Agent, pod: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(glasslet(agent, "describe", f"default/{pod}", "-o", "json"))
    return answer


@pytest.mark.parametrize("place", ["seen", "sandbox", "cri:CreateContainer", "probes", "status"])
def test_a_held_pod_can_be_deleted(controlplane: ControlPlane, cluster_agent: Agent, place: str) -> None:
    set_break(cluster_agent, place, "goes")
    controlplane.apply(probed("goes"))
    until_held(cluster_agent, "goes")
    controlplane.kubectl("delete", "pod", "goes", seconds=60)
    assert controlplane.get("pod", "goes") is None


def drain(controlplane: ControlPlane, *more: str) -> str:
    """Empties the node as its administrator does before an upgrade."""
    return controlplane.kubectl("drain", NODE, "--force", "--delete-emptydir-data", "--timeout=90s", *more)


def test_the_drain_of_a_node_lets_its_held_pods_go(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    places = ("seen", "volumes", "sandbox", "cri:CreateContainer", "probes", "status")
    for place in places:
        set_break(cluster_agent, place, name_of(place))
    controlplane.apply(*(probed(name_of(place)) for place in places))
    until_held(cluster_agent, *map(name_of, places))
    with node_watched(controlplane) as said:
        output = drain(controlplane)
    assert set(said) == {"True"}
    assert all(f"pod/{name_of(place)} evicted" in output for place in places)
    assert controlplane.pods() == {}
    assert held_at(cluster_agent) == {}


def test_a_drain_waits_for_a_pod_that_is_held_while_it_stops(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(probed("stays"))
    controlplane.wait_for("stays", is_ready)
    wanted = BreakRequest(at="stopping", pod="default/stays", hold_seconds=5, count=1)
    client(cluster_agent).post("/breaks", wanted, BreakRow)
    began = time.monotonic()
    drain(controlplane)
    assert time.monotonic() - began >= 5
    assert controlplane.get("pod", "stays") is None


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_an_agent_that_ends_forgets_its_breaks_and_the_next_one_starts_the_pod(
    controlplane: ControlPlane, cluster_agent: Agent, end: str
) -> None:
    set_break(cluster_agent, "created", "waits")
    controlplane.apply(probed("waits"))
    until_held(cluster_agent, "waits")
    getattr(cluster_agent, end)()
    cluster_agent.start()
    found = controlplane.wait_for("waits", is_ready)
    assert found is not None
    assert [one["restartCount"] for one in found["status"]["containerStatuses"]] == [0]
    assert client(cluster_agent).get("/breaks", BreaksAnswer).breaks == ()


def test_what_runs_of_a_held_pod_runs_on_with_probes_logs_and_commands(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    pod = probed("runs")
    ready = ["sh", "-c", "echo probed >> /tmp/probes"]
    pod["spec"]["containers"][0]["readinessProbe"]["exec"]["command"] = ready
    pod["spec"]["containers"].append(
        {
            "name": "side",
            "image": BUSYBOX,
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", "sleep 1; exit 3"],
        }
    )
    set_break(cluster_agent, "created", "runs", container="side", when="attempt >= 1")
    controlplane.apply(pod)
    until_held(cluster_agent, "runs")

    def probes() -> int:
        return controlplane.kubectl("exec", "runs", "-c", "main", "--", "cat", "/tmp/probes").count("probed")

    before = probes()
    wait_until(lambda: probes() >= before + 3)
    assert controlplane.kubectl("logs", "runs", "-c", "main") == ""
    found = controlplane.get("pod", "runs")
    assert found is not None
    states = {one["name"]: one for one in found["status"]["containerStatuses"]}
    assert states["main"]["ready"]
    assert states["side"]["restartCount"] >= 0
    hold = controlplane.wait_for_event("runs", "PodHeld")
    assert hold.startswith("Held at created of container side by break 1, until ")


def test_a_pod_is_stepped_and_inspected_by_hand(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    said = glasslet(cluster_agent, "break", "sandbox", "--pod", "default/web*", "--for", "5m")
    assert said.startswith("break 1: at sandbox, before, for default/web*; each hold lasts 5 min at most")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "door"}, "stringData": {"key": "open-sesame"}}
    pod = api_pod("web-7f")
    main = pod["spec"]["containers"][0]
    main["env"] = [
        {"name": "PLAIN", "value": "shown"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "door", "key": "key"}}},
    ]
    main["args"] = ["$(KEY)"]
    controlplane.apply(secret, pod)
    until_held(cluster_agent, "web-7f")
    assert "held at sandbox by break 1 for " in glasslet(cluster_agent, "ps")
    assert "is held at sandbox by break 1" in glasslet(cluster_agent, "why", "web-7f")
    action = glasslet(cluster_agent, "inspect", "web-7f", ".plan.actions[1].action")
    assert action == "CreateSandbox\n"
    set_break(cluster_agent, "cri:CreateContainer", "web-7f")
    step = client(cluster_agent).post("/pods/default/web-7f/step", None, StepAnswer)
    assert step.hold is not None
    assert any(row.text.startswith("sandbox") for row in step.passed)
    glasslet(cluster_agent, "continue", "web-7f")
    wait_until(lambda: held_at(cluster_agent).get("web-7f") == "cri:CreateContainer")
    tree = client(cluster_agent).get("/pods/default/web-7f/inspect", InspectAnswer).tree
    request = tree["request"]
    assert isinstance(request, dict)
    envs = {one["key"]: one["value"] for one in request["config"]["envs"]}
    assert envs["PLAIN"] == "shown"
    assert envs["KEY"] == "<11 characters>"
    assert "open-sesame" not in json.dumps(tree)
    said_each = ("w", "t", "b probes after", "i .at", "s", "c", "q")
    talk = glasslet(cluster_agent, "debug", "web-7f", stdin="\n".join(said_each) + "\n")
    assert "is held at cri:CreateContainer" in talk
    assert "RunPodSandbox" in talk
    assert ": at probes, after, for default/web-7f" in talk
    assert "is held at started of main by a step" in talk
    assert "default/web-7f goes on" in talk
    controlplane.wait_for("web-7f", is_ready)
    controlplane.wait_for_event("web-7f", "PodReleased")


def test_a_condition_that_loops_holds_nothing_up_and_its_break_is_off(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    numbers = f"[{', '.join(map(str, range(40)))}]"
    loops = f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a + b + c >= 0)))"
    set_break(cluster_agent, "sandbox", "*", when=loops)
    with node_watched(controlplane) as said:
        controlplane.apply(*(api_pod(f"past-{number}") for number in range(3)))
        for number in range(3):
            controlplane.wait_for(f"past-{number}", is_ready)
    assert set(said) == {"True"}
    assert held_at(cluster_agent) == {}
    assert "the condition took longer than 0.5 s; the break is off" in glasslet(cluster_agent, "breaks")


def test_a_wrong_condition_is_refused_with_its_place_and_a_65th_break_too(cluster_agent: Agent) -> None:
    said = glasslet(cluster_agent, "break", "sandbox", "--when", "contaner == 'main'")
    assert "not a CEL expression at line 1, column 1: there is no field contaner" in said
    for number in range(MOST_BREAKS):
        set_break(cluster_agent, "sandbox", f"none-{number}")
    assert "too many breaks" in glasslet(cluster_agent, "break", "sandbox")


@pytest.fixture
def large_node(controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path) -> Iterator[Agent]:
    agent = cluster_member(controlplane, containerd, tmp_path, maxPods=HELD_PODS + 50)
    with joined(controlplane, containerd, agent):
        yield agent


def test_as_many_breaks_as_there_can_be_hold_many_pods_and_let_all_of_them_go(
    controlplane: ControlPlane, large_node: Agent
) -> None:
    for number in range(MOST_BREAKS):
        # The first ones are held until the last ones are: on a busy machine that takes minutes.
        set_break(large_node, STARTS[number % len(STARTS)], f"many-*-{number}", hold_seconds=3600)
    names = [f"many-{number}-{number % MOST_BREAKS}" for number in range(HELD_PODS)]
    with node_watched(controlplane) as said:
        # 200 commands a second would leave no time for anything else.
        controlplane.apply(*(probed(name, period=60) for name in names))
        wait_until(lambda: set(names) <= set(held_at(large_node)), seconds=600)
        wanted = {name: STARTS[number % MOST_BREAKS % len(STARTS)] for number, name in enumerate(names)}
        assert held_at(large_node) == wanted
        client(large_node).delete("/breaks", ReleasedAnswer)
        wait_until(lambda: all(is_ready(found) for found in controlplane.pods().values()), seconds=600)
    assert set(said) == {"True"}
    assert held_at(large_node) == {}
