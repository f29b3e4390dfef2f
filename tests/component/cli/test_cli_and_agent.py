"""The command line tool as a process, with an agent behind a Unix socket."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from msgspec import Struct
from msgspec.structs import replace

from glasslet.answers.agent import ManifestProblem
from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod_ref import pod_ref
from glasslet.api.pod_status import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    PodCondition,
    PodStatus,
)
from glasslet.glass.stuck import Stuck
from glasslet.probes.kinds import ProbeKind
from glasslet.probes.results import Parts, ProbeResult, ProbeVerdict
from glasslet.record.milestones import READY
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station, WaitKind
from tests.builders.pod import container, pod
from tests.fakes.glass import FakeAgent, FakeSeenPod, fake_agent

RUNNING = PodStatus(
    phase="Running",
    pod_ip="10.42.0.17",
    conditions=(PodCondition(type="Ready", status="True", last_transition_time=datetime(2026, 1, 1, tzinfo=UTC)),),
    container_statuses=(ContainerStatus(name="main", ready=True, restart_count=1, image="busybox", image_id=""),),
)


class Ran(Struct):
    """The result of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[FakeAgent]:
    async with fake_agent(tmp_path) as running:
        yield running


@pytest.fixture
def web(agent: FakeAgent) -> FakeSeenPod:
    """The pod default/web, running, with a start in its record."""
    seen = FakeSeenPod(pod=pod(container(), container("log")), status=RUNNING)
    agent.source.seen.append(seen)
    record = agent.record
    with working_for(pod_ref(seen.pod)):
        record.passed(Station.SEEN)
        with record.station(Station.SANDBOX), record.wait(WaitKind.CRI_CALL, on="RunPodSandbox"):
            pass
        record.observed(READY, "False", "True")
    return seen


async def glasslet(root_dir: Path, *words: str, stdin: bytes = b"") -> Ran:
    """Runs the command."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from glasslet.cli.app import main; main()",
        *words,
        env={**os.environ, "GLASSLET_ROOT": str(root_dir), "COLUMNS": "120"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(stdin)
    assert process.returncode is not None
    return Ran(process.returncode, out.decode(errors="surrogateescape"), err.decode())


async def test_ps_shows_the_pods(agent: FakeAgent, web: FakeSeenPod) -> None:
    ran = await glasslet(agent.root_dir, "ps")
    assert ran.code == 0
    assert ran.out.splitlines()[1].split()[:5] == ["default/web", "Running", "1/2", "1", "-"]


BROKEN = ManifestProblem(file="/pods/api.yaml", line=7, message='spec.dnsPolicy: Unsupported value: "Mine"')


async def test_ps_lists_manifests_that_no_pod_came_of_below_the_table(agent: FakeAgent, web: FakeSeenPod) -> None:
    agent.source.broken_manifests = (BROKEN, replace(BROKEN, line=0, message="is empty"))
    ran = await glasslet(agent.root_dir, "ps")
    assert ran.out.splitlines()[2:] == [
        'broken manifest: /pods/api.yaml:7: spec.dnsPolicy: Unsupported value: "Mine"',
        "broken manifest: /pods/api.yaml: is empty",
    ]


async def test_ps_names_the_file_behind_a_link(agent: FakeAgent, tmp_path: Path) -> None:
    (tmp_path / "link.yaml").symlink_to("/home/me/api.yaml")
    agent.source.broken_manifests = (replace(BROKEN, file=str(tmp_path / "link.yaml")),)
    assert "broken manifest: /home/me/api.yaml:7: " in (await glasslet(agent.root_dir, "ps")).out


async def test_why_node_lists_broken_manifests(agent: FakeAgent) -> None:
    agent.source.broken_manifests = (BROKEN,)
    said = (await glasslet(agent.root_dir, "why", "node")).out
    assert "broken manifest  /pods/api.yaml:7: spec.dnsPolicy" in said


async def test_json_and_yaml_hold_the_same_answer(agent: FakeAgent, web: FakeSeenPod) -> None:
    as_json = json.loads((await glasslet(agent.root_dir, "ps", "-o", "json")).out)
    as_yaml = yaml.safe_load((await glasslet(agent.root_dir, "ps", "-o", "yaml")).out)
    assert as_json == as_yaml
    assert as_json["pods"][0]["name"] == "web"


async def test_trace_accounts_for_the_start(agent: FakeAgent, web: FakeSeenPod) -> None:
    ran = await glasslet(agent.root_dir, "trace", "web")
    assert "default/web  uid 0f1e2d3c…" in ran.out
    assert "RunPodSandbox" in (await glasslet(agent.root_dir, "trace", "web", "-o", "json")).out
    assert "without a name" in ran.out or "have no name" in ran.out


async def test_why_node_gives_a_verdict_on_the_node(agent: FakeAgent) -> None:
    agent.source.situation = agent.source.with_runtime(errors=("no such socket",))
    ran = await glasslet(agent.root_dir, "why", "node")
    assert ran.out.startswith("node-a is NotReady: the container runtime has not answered yet.")
    assert "no such socket" in ran.out


async def test_why_names_the_call_that_hangs(agent: FakeAgent, web: FakeSeenPod) -> None:
    since = agent.record.clock.now().timestamp() - 90
    hanging = Stuck("cri_call", "RunPodSandbox", since, 60.0)
    agent.source.hanging[PodUID(web.pod.metadata.uid)] = hanging
    said = (await glasslet(agent.root_dir, "why", "web")).out
    assert "default/web makes no progress: the runtime's answer to RunPodSandbox takes " in said
    assert ", and should take 1 min at most, since " in said


async def test_why_gives_a_verdict(agent: FakeAgent, web: FakeSeenPod) -> None:
    assert "default/web is fine" in (await glasslet(agent.root_dir, "why", "web")).out


async def test_why_of_a_pod_that_was_restarted_gives_the_last_words_of_the_instance_before(
    agent: FakeAgent, web: FakeSeenPod
) -> None:
    crashed = ContainerState(terminated=ContainerStateTerminated(exit_code=3, reason="Error"))
    main = replace(RUNNING.container_statuses[0], container_id="containerd://c2", last_state=crashed)
    agent.source.seen = [replace(web, status=replace(RUNNING, container_statuses=(main,)))]
    agent.source.logs["main"] = [b"all is well\n"]
    agent.source.previous_logs["main"] = [b"cannot reach the database\n"]
    said = (await glasslet(agent.root_dir, "why", "web")).out
    assert "exited with code 3" in said
    assert "cannot reach the database" in said


async def test_describe_and_waits_and_tasks_answer(agent: FakeAgent, web: FakeSeenPod) -> None:
    with working_for(pod_ref(web.pod)), agent.record.wait(WaitKind.EXIT, on="the end of main"):
        described, waits, tasks = await asyncio.gather(
            glasslet(agent.root_dir, "describe", "web"),
            glasslet(agent.root_dir, "waits"),
            glasslet(agent.root_dir, "tasks"),
        )
    assert "the end of main" in described.out
    assert "CONTAINER" in described.out
    assert "the end of main" in waits.out
    assert "TASK" in tasks.out
    assert "default/web" in tasks.out


async def test_describe_shows_the_last_results_of_each_probe(agent: FakeAgent, web: FakeSeenPod) -> None:
    readiness = ProbeResult(
        kind=ProbeKind.READINESS, container="main", instance=ContainerID("c1"), began=datetime(2026, 1, 1, tzinfo=UTC),
        verdict=ProbeVerdict.SUCCESS, note="status 200", total=0.0031, parts=Parts(connect=0.0002, first_byte=0.0027),
    )  # fmt: skip
    late = replace(readiness, verdict=ProbeVerdict.FAILURE, note="status 503", late=0.25)
    liveness = replace(readiness, kind=ProbeKind.LIVENESS, note="connected", parts=Parts(connect=0.0002))
    agent.source.probe_results = (*[readiness] * 9, late, liveness)
    text = (await glasslet(agent.root_dir, "describe", "web")).out
    lines = [line for line in text.splitlines() if "readiness" in line or "liveness" in line]
    assert len(lines) == 5, "four of one, all of the other"
    assert "failure  status 503  3.1 ms  connect 0.2 ms, first byte 2.7 ms, late 250 ms" in lines[3]
    assert len(json.loads((await glasslet(agent.root_dir, "describe", "web", "-o", "json")).out)["probes"]) == 11


async def test_a_wrong_name_is_answered_with_the_nearest(agent: FakeAgent, web: FakeSeenPod) -> None:
    ran = await glasslet(agent.root_dir, "why", "wbe")
    assert ran.code == 1
    assert ran.err == "error: no pod wbe on this node; did you mean default/web?\n"


async def test_without_an_agent_one_line_names_the_remedy(tmp_path: Path) -> None:
    ran = await glasslet(tmp_path, "ps")
    assert ran.code == 3
    assert ran.err.count("\n") == 1
    assert "glasslet up PATH" in ran.err


async def test_the_record_is_read_when_the_agent_is_down(tmp_path: Path) -> None:
    async with fake_agent(tmp_path) as running:
        with working_for(pod_ref(pod())):
            running.record.passed(Station.SEEN)
            running.record.observed(READY, "False", "True")
    traced, why, wrong = await asyncio.gather(
        glasslet(tmp_path, "trace", "web"), glasslet(tmp_path, "why", "default/web"), glasslet(tmp_path, "why", "wbe")
    )
    assert "from the record on disk" in traced.err
    assert "Ready" in traced.out
    assert "was last seen by an agent that no longer runs" in why.out
    assert (wrong.code, "did you mean default/web" in wrong.err) == (3, True)


async def test_a_removed_pod_is_still_explained(agent: FakeAgent) -> None:
    with working_for(pod_ref(pod())):
        agent.record.passed(Station.SEEN)
        agent.record.passed(Station.GONE)
    ran = await glasslet(agent.root_dir, "why", "web")
    assert "default/web was removed" in ran.out


async def test_the_agent_itself_has_a_trace(agent: FakeAgent) -> None:
    with agent.record.station(Station.SEEN, detail="sockets"):
        pass
    ran = await glasslet(agent.root_dir, "trace", "--agent")
    assert "sockets" in ran.out


async def test_logs_arrive_byte_for_byte(agent: FakeAgent, web: FakeSeenPod) -> None:
    agent.source.logs["log"] = [b"one\n", b"\xff\x00raw"]
    ran = await glasslet(agent.root_dir, "logs", "web", "-c", "log", "--tail", "5", "--since", "1h", "--timestamps")
    assert ran.out.encode("utf-8", "surrogateescape") == b"one\n\xff\x00raw"
    (request,) = agent.source.requests
    assert (request.container, request.tail, request.timestamps) == ("log", 5, True)
    assert request.since is not None


async def test_a_log_that_breaks_off_is_no_success(agent: FakeAgent, web: FakeSeenPod) -> None:
    agent.source.logs["main"] = [b"one\n", b"two\n"]
    agent.source.break_off_after = 1
    ran = await glasslet(agent.root_dir, "logs", "web")
    assert ran.out == "one\n"
    assert ran.code == 1
    assert "not complete" in ran.err


async def test_a_log_that_cannot_be_read_has_a_reason(agent: FakeAgent, web: FakeSeenPod) -> None:
    ran = await glasslet(agent.root_dir, "logs", "web")
    assert (ran.code, ran.err) == (1, 'error: container "main" in pod "web" is waiting to start\n')


@pytest.mark.parametrize(
    ("words", "field"),
    [(("--tail", "many"), "tail"), (("--limit-bytes", "0"), "limitBytes"), (("-c", "mian"), "container")],
)
async def test_a_wrong_option_names_field_value_and_what_is_allowed(
    agent: FakeAgent, web: FakeSeenPod, words: tuple[str, ...], field: str
) -> None:
    ran = await glasslet(agent.root_dir, "logs", "web", *words)
    assert ran.code == 1
    assert field in ran.err
    assert words[1] in ran.err
    assert "allowed" in ran.err


async def test_exec_passes_the_runtimes_refusal_on(agent: FakeAgent, web: FakeSeenPod) -> None:
    ran = await glasslet(agent.root_dir, "exec", "web", "--", "true")
    assert (ran.code, "container is not running" in ran.err) == (1, True)


async def test_a_reader_that_goes_away_is_no_error(agent: FakeAgent, web: FakeSeenPod) -> None:
    agent.source.logs["main"] = [b"x" * 65536] * 64
    process = await asyncio.create_subprocess_shell(
        f"{sys.executable} -c 'from glasslet.cli.app import main; main()' logs web | head -c 10",
        env={**os.environ, "GLASSLET_ROOT": str(agent.root_dir)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert (out, err) == (b"x" * 10, b"")


@pytest.mark.parametrize(
    "words", [("ps", "-o", "xml"), ("pss",), ("trace",), ("trace", "web", "--agent"), ("exec", "web")]
)
async def test_wrong_usage_has_exit_code_2(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = await glasslet(tmp_path, *words)
    assert ran.code == 2
    assert "Error" in ran.err


async def test_a_socket_path_longer_than_an_address_is_reached(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    folder = os.open(deep, os.O_PATH)
    try:
        async with fake_agent(Path(f"/proc/self/fd/{folder}")):
            assert (await glasslet(deep, "ps")).out == "no pods\n"
    finally:
        os.close(folder)


MANIFEST = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: busybox}]}\n"


async def test_manifests_are_checked_without_an_agent(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(MANIFEST)
    (tmp_path / "bad.yaml").write_text(MANIFEST.replace("busybox", "Busybox").replace("name: a", "name: A"))
    good, bad, as_json, both, piped = await asyncio.gather(
        glasslet(tmp_path, "check", str(tmp_path / "good.yaml")),
        glasslet(tmp_path, "check", str(tmp_path)),
        glasslet(tmp_path, "check", str(tmp_path / "bad.yaml"), "-o", "json"),
        glasslet(tmp_path, "check", str(tmp_path), "--v=2"),
        glasslet(tmp_path, "check", "-", stdin=MANIFEST.encode()),
    )
    assert (good.code, good.out) == (0, "ok: no problem in 1 file\n")
    assert (bad.code, bad.out.splitlines()[-1]) == (1, "2 problems in 2 files")
    problems = json.loads(as_json.out)["problems"]
    assert {(it["line"], it["field"]) for it in problems} == {
        (4, "spec.containers[0].name"),
        (4, "spec.containers[0].image"),
    }
    assert (both.code, "not both" in both.err) == (2, True)
    assert piped.code == 0


async def test_a_namespace_is_chosen_as_in_kubectl(agent: FakeAgent, web: FakeSeenPod) -> None:
    chosen, other, everything, found, missing = await asyncio.gather(
        glasslet(agent.root_dir, "ps", "-n", "default"),
        glasslet(agent.root_dir, "ps", "-n", "kube-system"),
        glasslet(agent.root_dir, "ps", "-n", "kube-system", "-A"),
        glasslet(agent.root_dir, "describe", "-n", "default", "web"),
        glasslet(agent.root_dir, "why", "-n", "kube-system", "web"),
    )
    assert "default/web" in chosen.out
    assert other.out == "no pods\n"
    assert everything.out == chosen.out
    assert found.code == 0
    assert (missing.code, "no pod kube-system/web" in missing.err) == (1, True)
