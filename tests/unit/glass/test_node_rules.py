"""Why the node is Ready or not: from the same healthy node, one thing changed at a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from glasslet.answers.why import VerdictAnswer
from glasslet.glass.verdicts.api_causes import LastTry, TryResult
from glasslet.glass.verdicts.node_rules import NodeSituation, node_verdict
from glasslet.glass.verdicts.runtime_causes import RuntimeState
from glasslet.kubeapi.obstacles import Obstacle, ObstacleKind
from glasslet.record.history import LiveWait
from glasslet.runtime.observed.runtime_process import ProcessView
from tests.builders.record import START

SINCE = START - timedelta(seconds=25)
SERVER = "https://10.0.0.1:6443"
REFUSED = Obstacle(ObstacleKind.REFUSED, "10.0.0.1:6443")
NO_CONNECTION = LastTry(
    result=TryResult.NO_ANSWER, said="PUT lease: cannot connect to 10.0.0.1:6443", obstacle=REFUSED, since=SINCE
)
FORBIDDEN = LastTry(
    result=TryResult.REFUSED,
    said='POST nodes: nodes is forbidden: User "me" cannot create',
    message='nodes is forbidden: User "me" cannot create',
    code=403,
    since=SINCE,
)
UNAUTHORIZED = LastTry(
    result=TryResult.REFUSED, said="POST nodes: Unauthorized", message="Unauthorized", code=401, since=SINCE
)


def runtime(**fields: Any) -> dict[str, RuntimeState]:
    return {
        "runtime": RuntimeState(now=START, endpoint="unix:///run/c.sock", since=SINCE, network_since=SINCE, **fields)
    }


def why(**changed: Any) -> VerdictAnswer:
    healthy = {
        "name": "node-a",
        "now": START,
        "server": SERVER,
        "runtime": RuntimeState(now=START),
        "lease_renewed_at": START - timedelta(seconds=3),
        "lease_seconds": 40,
        "reported": "True",
        "reported_reason": "KubeletReady",
        "reported_message": "kubelet is posting ready status",
    }
    return node_verdict(NodeSituation(**{**healthy, **changed}))


def test_a_healthy_node_is_ready_and_shows_its_last_heartbeat() -> None:
    verdict = why()
    assert (verdict.rule, verdict.state) == ("fine", "fine")
    assert verdict.sentence == ("node-a is Ready: the runtime and its network work; last heartbeat: 3 s ago.")


def test_a_standalone_node_mentions_no_api_server() -> None:
    verdict = why(standalone=True, reported="", lease_renewed_at=None)
    assert verdict.sentence == "node-a is ready: the runtime and its network work (standalone, no API server)."
    assert verdict.evidence == ()


@pytest.mark.parametrize(
    ("changed", "rule", "evidence"),
    [
        ({"certificate_expired_at": START, "lease": FORBIDDEN}, "certificate_expired", FORBIDDEN.said),
        ({"registered": False, "registration": FORBIDDEN}, "registration_refused", FORBIDDEN.said),
        ({"registered": False, "registration": NO_CONNECTION}, "api_unreachable", NO_CONNECTION.said),
        ({"lease": UNAUTHORIZED}, "credentials_refused", UNAUTHORIZED.said),
        ({"registered": False}, "not_registered", "none by this agent"),
        ({"lease": NO_CONNECTION, "lease_renewed_at": START - timedelta(minutes=2)}, "api_unreachable", "2 min"),
        ({"report": NO_CONNECTION}, "api_unreachable", NO_CONNECTION.said),
        ({"lease": FORBIDDEN}, "lease_failing", FORBIDDEN.said),
        (runtime(errors=("rpc error: no such socket",)), "runtime_down", "no such socket"),
        (runtime(network_error="cni plugin not initialized"), "network_not_ready", "cni plugin not initialized"),
        ({"not_ready": "CSINode is not yet initialized"}, "not_ready", "CSINode is not yet initialized"),
        ({"reported": "Unknown", "reported_reason": "NodeStatusUnknown"}, "not_reported", "NodeStatusUnknown"),
        ({"reported": "False", "report": FORBIDDEN}, "not_reported", FORBIDDEN.said),
    ],
)
def test_what_keeps_a_node_from_being_ready_is_named_with_its_evidence(
    changed: dict[str, Any], rule: str, evidence: str
) -> None:
    if not changed.get("registered", True):
        changed = {"reported": "", "lease_renewed_at": None, **changed}
    verdict = why(**changed)
    assert verdict.rule == rule
    assert "node-a" in verdict.sentence
    assert verdict.sentence.endswith(".")
    assert any(evidence in one.text for one in verdict.evidence)
    assert verdict.next_step


def test_the_cause_comes_before_its_consequence() -> None:
    everything = {"lease": NO_CONNECTION, "reported": "Unknown", **runtime(errors=("down",), network_error="none")}
    assert why(**everything).rule == "api_unreachable"


OF_SERVER = "the API server https://10.0.0.1:6443"


@pytest.mark.parametrize(
    ("obstacle", "sentence", "step"),
    [
        (REFUSED, f"{OF_SERVER} refuses the connection: no process listens there", "start the API server"),
        (
            Obstacle(ObstacleKind.REFUSED, "proxy:3128"),
            f"{OF_SERVER} refuses the connection at proxy:3128: no process listens there",
            "start the API server",
        ),
        (
            Obstacle(ObstacleKind.UNKNOWN_HOST, "api.example.com:6443", "Name or service not known"),
            f"host api.example.com of {OF_SERVER} is unknown (Name or service not known)",
            "/etc/hosts",
        ),
        (
            Obstacle(ObstacleKind.NAME_SERVICE, "api.example.com:6443", "Temporary failure in name resolution"),
            f"the node's name servers do not resolve host api.example.com of {OF_SERVER}",
            "/etc/resolv.conf",
        ),
        (
            Obstacle(ObstacleKind.NO_ROUTE, detail="no route to host"),
            f"there is no way to {OF_SERVER} (no route to host)",
            "routes",
        ),
        (Obstacle(ObstacleKind.TIMEOUT), f"{OF_SERVER} does not answer in time", "firewall"),
        (Obstacle(ObstacleKind.CLOSED), f"{OF_SERVER} closes connections without an answer", "start the API"),
        (Obstacle(ObstacleKind.TLS, detail="wrong version number"), "does not speak TLS as the node does", "server"),
        (Obstacle(ObstacleKind.CERTIFICATE, detail="certificate has expired"), "certificate has expired", "renew"),
        (Obstacle(ObstacleKind.CERTIFICATE, detail="certificate is not yet valid"), "not yet valid", "set the node's"),
        (
            Obstacle(ObstacleKind.CERTIFICATE, detail="self-signed certificate in certificate chain"),
            "a certificate that the node does not accept: self-signed",
            "put the CA",
        ),
        (
            Obstacle(ObstacleKind.CERTIFICATE, detail="IP address mismatch, certificate is not valid for '10.0.0.1'"),
            "IP address mismatch",
            "tls-server-name",
        ),
    ],
)
def test_an_api_server_out_of_reach_is_named_with_the_obstacle(obstacle: Obstacle, sentence: str, step: str) -> None:
    verdict = why(lease=LastTry(result=TryResult.NO_ANSWER, said="no", obstacle=obstacle, since=SINCE))
    assert verdict.rule == "api_unreachable"
    assert sentence in verdict.sentence
    assert verdict.sentence.endswith(", since 09:59:35 UTC (25 s).")
    assert step in verdict.next_step


@pytest.mark.parametrize(
    ("tried", "sentence"),
    [
        (UNAUTHORIZED, f"{OF_SERVER} does not accept the node's credentials (401: Unauthorized)"),
        (FORBIDDEN, f'{OF_SERVER} forbids it (403: nodes is forbidden: User "me" cannot create)'),
        (
            LastTry(result=TryResult.NO_ANSWER, code=503, message="etcd is away"),
            f"{OF_SERVER} answers 503: etcd is away",
        ),
        (LastTry(result=TryResult.NO_ANSWER, code=429), f"{OF_SERVER} limits requests (429)"),
        (LastTry(result=TryResult.REFUSED, message="credentials cannot be used: no such file"), ": credentials cannot"),
    ],
)
def test_an_answer_that_refuses_the_node_is_quoted_with_its_number(tried: LastTry, sentence: str) -> None:
    assert sentence in why(lease=tried).sentence


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        (
            {"said": "Status: failed to connect: error: No such file or directory"},
            "the container runtime does not run: there is no socket at /run/c.sock",
        ),
        ({"said": "connect failed: Connection refused"}, "does not run: no process listens on /run/c.sock"),
        ({"said": "Status: no answer within 30 s"}, "does not answer: Status: no answer within 30 s"),
        (
            {"calls": (LiveWait(None, "cri_call", "Status", (START - timedelta(seconds=40)).timestamp()),)},
            "the container runtime does not answer Status, asked 40 s ago (of at most 2 min)",
        ),
        (
            {"errors": ("container runtime not ready: RuntimeReady=false reason:Sick message:disk is full",)},
            "the container runtime says that it is not ready: disk is full (Sick)",
        ),
        (
            {"errors": ("PLEG is not healthy: pleg was last seen active 4m0s ago; threshold is 3m0s",)},
            "does not list its pods and containers: pleg was last seen active 4m0s ago",
        ),
    ],
)
def test_a_runtime_that_is_not_ready_is_named_with_its_cause(view: dict[str, Any], sentence: str) -> None:
    verdict = why(**runtime(**{"errors": ("container runtime is down",), **view}))
    assert verdict.rule == "runtime_down"
    assert sentence in verdict.sentence
    assert ", since 09:59:35 UTC" in verdict.sentence


CONTAINERD: dict[str, Any] = {"name": "containerd", "pid": 7}
GONE_AT = START - timedelta(seconds=20)


@pytest.mark.parametrize(
    ("process", "clause", "step"),
    [
        ({"gone_since": GONE_AT}, "its process containerd (pid 7) has ended", "start the runtime's service"),
        ({"state": "T"}, "its process containerd (pid 7) is stopped by a signal (SIGSTOP)", "kill -CONT 7"),
        ({"state": "D"}, "its process containerd (pid 7) waits in the kernel", "restart its service"),
        ({"state": "S"}, "its process containerd (pid 7) runs", "restart its service"),
    ],
)
def test_the_runtimes_process_is_named_with_what_it_does(process: dict[str, Any], clause: str, step: str) -> None:
    late = LiveWait(None, "cri_call", "ListPodSandbox", (START - timedelta(seconds=40)).timestamp())
    verdict = why(**runtime(calls=(late,), errors=("down",), process=ProcessView(**CONTAINERD, **process)))
    assert clause in verdict.sentence
    assert step in verdict.next_step


def test_when_the_runtimes_process_was_gone_is_evidence() -> None:
    view = ProcessView(**CONTAINERD, gone_since=GONE_AT)
    evidence = {one.label: one.text for one in why(**runtime(said="Connection refused", process=view)).evidence}
    assert evidence["process"] == "containerd (pid 7) has ended; at 2026-01-01 09:59:40 UTC it was gone"


def test_a_runtime_that_is_only_silent_has_the_time_of_the_question() -> None:
    asked = (START - timedelta(seconds=40)).timestamp()
    silent = RuntimeState(now=START, calls=(LiveWait(None, "cri_call", "Status", asked),))
    assert ", since 09:59:20 UTC" in why(runtime=silent).sentence


@pytest.mark.parametrize(
    ("load", "sentence", "step"),
    [
        (
            "cni config load failed: no network config found in /etc/cni/net.d: cni plugin not initialized",
            "there is no CNI configuration in /etc/cni/net.d",
            "install a network",
        ),
        (
            (
                "cni config load failed: failed to load CNI config list file /etc/cni/net.d/10-a.conflist: error "
                "parsing configuration list: invalid character 'x'"
            ),
            "CNI configuration /etc/cni/net.d/10-a.conflist cannot be used: error parsing configuration list: invalid",
            "correct or replace",
        ),
        ("", "Network plugin returns error: cni plugin not initialized", "install"),
    ],
)
def test_a_network_that_is_not_ready_is_named_with_its_cause(load: str, sentence: str, step: str) -> None:
    error = (
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
        "message:Network plugin returns error: cni plugin not initialized"
    )
    verdict = why(**runtime(network_error=error, network_load=load))
    assert verdict.rule == "network_not_ready"
    assert sentence in verdict.sentence
    assert step in verdict.next_step


def test_a_deleted_node_says_when_and_whether_it_comes_again() -> None:
    gone = {"registered": False, "reported": "", "deleted_at": SINCE}
    assert "its Node was deleted, and is created again, since 09:59:35 UTC (25 s)." in why(**gone).sentence
    alone = why(**gone, registers=False)
    assert "its Node was deleted, and registerNode is false" in alone.sentence
    assert alone.next_step == "create the Node node-a, or set registerNode: true"


def test_a_lease_that_is_still_good_is_not_called_notready() -> None:
    assert "will soon be NotReady" in why(lease=NO_CONNECTION).sentence
    assert "is NotReady for the cluster" in why(lease=NO_CONNECTION, lease_renewed_at=None).sentence


def test_sources_that_have_not_reported_are_named() -> None:
    assert "pods of api have not been listed yet" in why(waiting_sources=("api",)).sentence
