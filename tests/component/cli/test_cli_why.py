"""`glasslet why` about a whole node, and the pages of its rules, as a process with an agent behind a Unix socket."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from glasslet.answers.agent import ManifestProblem
from glasslet.api.pod_ref import pod_ref
from glasslet.api.pod_status import ContainerState, ContainerStateWaiting, ContainerStatus, PodCondition, PodStatus
from glasslet.host.files.start_note import StartNotes
from tests.builders.pod import container, pod
from tests.component.cli.test_cli_and_agent import glasslet
from tests.fakes.glass import FakeAgent, FakeSeenPod, fake_agent

NOT_READY = PodCondition(type="Ready", status="False", last_transition_time=datetime(2026, 1, 1, tzinfo=UTC))
REFUSED = ContainerState(waiting=ContainerStateWaiting(reason="ErrImageNeverPull", message="not present"))
FAILING = PodStatus(
    phase="Pending",
    conditions=(NOT_READY,),
    container_statuses=(
        ContainerStatus(name="main", state=REFUSED, ready=False, restart_count=0, image="a:1", image_id=""),
    ),
)
BROKEN = ManifestProblem(file="/pods/api.yaml", line=7, message='spec.dnsPolicy: Unsupported value: "Mine"')


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[FakeAgent]:
    async with fake_agent(tmp_path) as running:
        yield running


async def test_why_without_a_name_says_that_nothing_is_wrong(agent: FakeAgent) -> None:
    ran = await glasslet(agent.root_dir, "why")
    assert (ran.code, ran.out) == (0, "node-a: nothing is wrong with the node and its 0 pods.\n")


async def test_why_without_a_name_lists_what_is_wrong_and_says_so_by_its_exit_code(agent: FakeAgent) -> None:
    agent.source.seen.append(FakeSeenPod(pod=pod(container(image="a:1")), status=FAILING))
    agent.source.broken_manifests = (BROKEN,)
    ran = await glasslet(agent.root_dir, "why")
    assert ran.code == 5
    lines = ran.out.splitlines()
    assert lines[0] == "node-a: something is wrong with 1 of 1 pod and 1 manifest."
    assert lines[1].startswith("  default/web cannot get image a:1 of container main: it is not on the node")
    assert lines[2].startswith("    next step  import the image")
    assert lines[3] == ('  no pod comes of manifest /pods/api.yaml: line 7: spec.dnsPolicy: Unsupported value: "Mine".')


async def test_troubles_have_the_id_of_their_rule_in_json(agent: FakeAgent) -> None:
    agent.source.broken_manifests = (BROKEN,)
    ran = await glasslet(agent.root_dir, "why", "-o", "json")
    assert ran.code == 5
    (trouble,) = json.loads(ran.out)["troubles"]
    assert (trouble["subject"], trouble["verdict"]["rule"], trouble["wrong"]) == ("manifest", "broken_manifest", True)


async def test_a_finding_about_the_agent_is_listed_and_the_exit_code_stays_0(agent: FakeAgent) -> None:
    agent.record.finding("the disk is slow")
    ran = await glasslet(agent.root_dir, "why")
    assert ran.code == 0
    assert "the disk is slow" in ran.out


async def test_a_finding_about_a_pod_is_wrong(agent: FakeAgent) -> None:
    seen = FakeSeenPod(pod=pod())
    agent.record.finding("two pods of one name", pod=pod_ref(seen.pod))
    ran = await glasslet(agent.root_dir, "why")
    assert (ran.code, "default/web found, since" in ran.out, "two pods of one name" in ran.out) == (5, True, True)


async def test_a_namespace_leaves_out_the_pods_of_others(agent: FakeAgent) -> None:
    agent.source.seen.append(FakeSeenPod(pod=pod(container(image="a:1")), status=FAILING))
    ran = await glasslet(agent.root_dir, "why", "-n", "kube-system")
    assert (ran.code, "default/web" in ran.out) == (0, False)


async def test_why_node_ends_with_5_while_the_node_is_not_ready(agent: FakeAgent) -> None:
    assert (await glasslet(agent.root_dir, "why", "node")).code == 0
    agent.source.situation = agent.source.with_runtime(errors=("no such socket",))
    assert (await glasslet(agent.root_dir, "why", "node")).code == 5


async def test_a_watched_answer_is_written_again_when_it_changes(agent: FakeAgent) -> None:
    watching = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from glasslet.cli.app import main; main()",
        "why",
        "--watch",
        env={**os.environ, "GLASSLET_ROOT": str(agent.root_dir)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert watching.stdout is not None
    try:
        assert b"nothing is wrong" in await watching.stdout.readline()
        agent.source.broken_manifests = (BROKEN,)
        assert b"something is wrong with 1 manifest" in await watching.stdout.readline()
    finally:
        watching.terminate()
        await watching.wait()


async def test_why_without_an_agent_says_why_its_start_was_refused(tmp_path: Path) -> None:
    StartNotes(str(tmp_path), node="node-a").refused([("port 10250 of 0.0.0.0 is in use by other (pid 7)", "")])
    for words in (("why",), ("why", "node")):
        ran = await glasslet(tmp_path, *words)
        assert ran.code == 5
        assert "node-a: no agent runs: its start was refused at " in ran.out
        assert "port 10250 of 0.0.0.0 is in use by other (pid 7)." in ran.out


async def test_why_without_an_agent_and_without_its_traces_ends_with_3(tmp_path: Path) -> None:
    assert (await glasslet(tmp_path, "why")).code == 3


async def test_explain_prints_the_page_of_a_rule_without_an_agent(tmp_path: Path) -> None:
    ran = await glasslet(tmp_path, "why", "--explain", "image_failed")
    assert ran.code == 0
    assert ran.out.startswith("image_failed\n\nThe image of a container could not be pulled")
    assert "What helps:" in ran.out


async def test_explain_of_an_unknown_rule_names_the_nearest(tmp_path: Path) -> None:
    ran = await glasslet(tmp_path, "why", "--explain", "image_faild")
    assert (ran.code, "did you mean image_failed" in ran.err) == (1, True)
