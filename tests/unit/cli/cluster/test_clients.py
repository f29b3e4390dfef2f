"""Which node is asked, and how answers of several nodes are put together."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from glasslet.answers.agent import AgentAnswer, WaitRow, WaitsAnswer
from glasslet.answers.pods import PodRow, PodsAnswer
from glasslet.answers.states import Rule, VerdictState, VerdictSubject
from glasslet.answers.volumes import DriverRow, VolumesAnswer
from glasslet.answers.why import Trouble, TroublesAnswer, VerdictAnswer
from glasslet.cli.app import COMMANDS, load
from glasslet.cli.cluster.app import CLUSTER_COMMANDS, SHARED, connection_arguments, glass, in_cluster
from glasslet.cli.cluster.clients import ClusterClient, ClusterScope, NodeClient, joined, joined_troubles, named_pod
from glasslet.cli.cluster.objects import PodObject
from glasslet.cli.failure import Failure

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pods(*names: str) -> PodsAnswer:
    return PodsAnswer(pods=tuple(PodRow(namespace="shop", name=name, uid=name, phase="Running") for name in names))


def test_joined_rows_have_their_node() -> None:
    rows = joined(PodsAnswer, {"node-a": pods("web"), "node-b": pods("job", "db")}).pods
    assert [(row.name, row.node) for row in rows] == [("web", "node-a"), ("job", "node-b"), ("db", "node-b")]


def test_joined_volumes_have_their_node_and_so_has_a_problem() -> None:
    here = VolumesAnswer(drivers=(DriverRow(name="d", endpoint="/d.sock"),))
    there = VolumesAnswer(problem="the disk does not answer")
    found = joined(VolumesAnswer, {"node-a": here, "node-b": there})
    assert [row.node for row in found.drivers] == ["node-a"]
    assert found.problem == "node-b: the disk does not answer"


def test_joined_waits_have_their_node() -> None:
    waits = WaitsAnswer(waits=(WaitRow(kind="cri", on="PullImage", since=NOW),))
    assert [row.node for row in joined(WaitsAnswer, {"node-a": waits}).waits] == ["node-a"]


def test_a_nodes_client_asks_through_the_node_proxy() -> None:
    assert NodeClient(Path("/s"), "node-a").prefix == "/api/v1/nodes/node-a/proxy/glass/v1"


def test_an_answer_that_is_one_nodes_own_needs_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    client = ClusterClient(Path("/s"), ClusterScope())
    monkeypatch.setattr(client, "nodes", lambda: ["node-a", "node-b"])
    with pytest.raises(Failure, match="name it with --node: node-a, node-b"):
        client.get("/agent", AgentAnswer)


def test_every_node_silent_is_one_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    client = ClusterClient(tmp_path / "s", ClusterScope())
    monkeypatch.setattr(client, "nodes", lambda: ["node-a", "node-b"])
    with pytest.raises(Failure, match="none of 2 nodes answers: node-a does not answer: "):
        client.get("/pods", PodsAnswer)


def test_a_pod_without_a_node_has_the_words_of_the_scheduler() -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    plain = {"metadata": {"name": "web", "namespace": "shop"}, "status": {"conditions": [unscheduled]}}
    found = msgspec.convert(plain, PodObject)
    assert (found.node, found.unscheduled) == ("", "0/3 nodes are available")


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_command_keeps_its_options_and_gets_those_of_the_cluster(name: str) -> None:
    theirs = {option for parameter in load(name).params for option in parameter.opts}
    ours = {option for parameter in in_cluster(load(name)).params for option in parameter.opts}
    assert ours >= theirs | {"--node", "--all-nodes", "--context"}


@pytest.mark.parametrize("name", CLUSTER_COMMANDS)
def test_every_command_can_be_loaded_and_has_no_option_twice(name: str) -> None:
    command = glass.get_command(glass.make_context("glass", [], resilient_parsing=True), name)
    assert command is not None
    options = [option for parameter in command.params for option in parameter.opts]
    assert len(options) == len(set(options))


def test_shared_commands_are_commands_of_glasslet() -> None:
    assert set(SHARED) <= set(COMMANDS)


def test_options_reach_kubectl_as_they_are() -> None:
    typed = {"kubectl_context": "prod", "kubectl_as_group": ("a", "b"), "kubectl_insecure_skip_tls_verify": True}
    assert connection_arguments({**typed, "kubectl_token": None}) == [
        "--context=prod",
        "--as-group=a",
        "--as-group=b",
        "--insecure-skip-tls-verify",
    ]


def troubles(name: str, *, wrong: bool) -> TroublesAnswer:
    state = VerdictState.FAILING if wrong else VerdictState.FINE
    verdict = VerdictAnswer(namespace="", name=name, rule=Rule.NOT_READY, state=state, sentence=name)
    found = (Trouble(subject=VerdictSubject.NODE, verdict=verdict, wrong=wrong),)
    return TroublesAnswer(sentence=name, node=verdict, wrong=wrong, pods=3, troubles=found)


def test_the_troubles_of_several_nodes_are_one_list_with_the_worst_first() -> None:
    whole = joined_troubles({"node-a": troubles("node-a", wrong=False), "node-b": troubles("node-b", wrong=True)})
    assert whole.sentence == "Something is wrong on 1 of 2 nodes: node-b."
    assert [trouble.verdict.name for trouble in whole.troubles] == ["node-b", "node-a"]
    assert (whole.wrong, whole.pods, whole.node.name) == (True, 6, "node-b")


@pytest.mark.parametrize(
    ("body", "pod"),
    [
        (b'{"at": "sandbox", "pod": "shop/web"}', ("shop", "web")),
        (b'{"pod": "web", "namespace": "shop"}', ("shop", "web")),
        (b'{"pod": "shop/web-*"}', None),
        (b'{"pod": "web"}', None),
        (b'{"seconds": 30}', None),
        (None, None),
    ],
)
def test_a_request_about_one_pod_goes_to_its_node(body: bytes | None, pod: tuple[str, str] | None) -> None:
    assert named_pod(body) == pod
