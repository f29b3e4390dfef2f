"""Refusals between kubectl and an agent, in words."""

from __future__ import annotations

import json

import pytest

from glasslet.cli.cluster.refusals import ApiRefused, NodeSilent, api_refusal, node_refusal


def status(code: int, message: str, reason: str = "") -> bytes:
    return json.dumps({"kind": "Status", "code": code, "message": message, "reason": reason}).encode()


FORBIDDEN_NODE = (
    'nodes "node-a" is forbidden: User "paul" cannot create resource "nodes/proxy" in API group "" at the cluster scope'
)
FORBIDDEN_PODS = 'pods is forbidden: User "mary" cannot list resource "pods" in API group "" in the namespace "shop"'
FORBIDDEN_BY_KUBELET = b"Forbidden (user=kube-apiserver, verb=get, resource=nodes, subresource(s)=[glass])"


def test_a_missing_right_for_a_node_comes_first() -> None:
    refused = node_refusal("node-a", 403, status(403, FORBIDDEN_NODE))
    assert isinstance(refused, ApiRefused)
    assert refused.message == f"you need create on nodes/proxy: {FORBIDDEN_NODE}"


def test_a_missing_right_in_a_namespace_names_it() -> None:
    assert api_refusal(403, status(403, FORBIDDEN_PODS)).message.startswith(
        "you need list on pods in namespace shop: pods is forbidden"
    )


def test_a_node_that_refuses_the_api_server_says_what_its_user_needs() -> None:
    refused = node_refusal("node-a", 403, FORBIDDEN_BY_KUBELET)
    assert refused is not None
    assert refused.message == "node-a refused the API server: its user kube-apiserver needs get on nodes/glass"


@pytest.mark.parametrize(
    ("code", "body", "words"),
    [
        (503, status(503, "error trying to reach service: dial tcp 10.0.0.9:10250: i/o timeout"), "dial tcp 10.0.0.9"),
        (404, b"404 page not found\n", "does not run glasslet"),
        (502, b"bad gateway", "bad gateway"),
    ],
)
def test_a_node_without_an_answer_is_silent(code: int, body: bytes, words: str) -> None:
    refused = node_refusal("node-a", code, body)
    assert isinstance(refused, NodeSilent)
    assert words in refused.message


def test_an_agents_own_refusal_is_left_to_the_agents_client() -> None:
    assert node_refusal("node-a", 404, b'{"error":"no pod web"}') is None
