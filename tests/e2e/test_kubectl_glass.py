"""`kubectl glass` through a real API server: its node proxy, its rights, a node that does not answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar

from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import api_pod
from tests.fakes.agent import FOR_EVER, NODE, Agent
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain, is_ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

SILENT = "node-silent"
PROGRAMS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def cluster_agent(
    controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Agent]:
    """One agent for all of these, with a pod; both checks of its callers are the API server's."""
    agent = cluster_member(
        controlplane,
        containerd,
        tmp_path_factory.mktemp("g"),
        authentication={
            "x509": {"clientCAFile": controlplane.ca},
            "webhook": {"enabled": True},
            "anonymous": {"enabled": False},
        },
        authorization={"mode": "Webhook"},
    )
    with joined(controlplane, containerd, agent):
        controlplane.apply(api_pod("web", FOR_EVER))
        controlplane.wait_for("web", is_ready)
        yield agent


@pytest.fixture(scope="module")
def people(controlplane: ControlPlane) -> Iterator[None]:
    """jane may ask nodes; paul may see pods only; mary may do nothing."""
    roles = {
        "sees-pods": [{"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list"]}],
        "asks-nodes": [
            {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
        ],
    }
    holders = {"sees-pods": ["jane", "paul"], "asks-nodes": ["jane"]}
    made: list[Plain] = []
    for name, rules in roles.items():
        meta = {"name": f"glass-{name}"}
        rbac = "rbac.authorization.k8s.io"
        made.append({"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules})
        made.append(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": meta,
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": meta["name"]},
                "subjects": [{"apiGroup": rbac, "kind": "User", "name": user} for user in holders[name]],
            }
        )
    controlplane.apply(*made)
    yield
    for one in made:
        controlplane.kubectl("delete", one["kind"], one["metadata"]["name"])


@pytest.fixture
def silent_node(controlplane: ControlPlane) -> Iterator[str]:
    """A node whose kubelet's port is closed."""
    controlplane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": SILENT}})
    status = {
        "addresses": [{"type": "InternalIP", "address": "198.18.255.254"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}},
    }
    subprocess.run(["ip", "address", "replace", "198.18.255.254/32", "dev", "lo"], check=True)
    controlplane.kubectl(
        "patch", "node", SILENT, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})
    )
    yield SILENT
    controlplane.kubectl("delete", "node", SILENT)
    subprocess.run(["ip", "address", "del", "198.18.255.254/32", "dev", "lo"], check=True)


def kubectl_glass(plane: ControlPlane, *words: str) -> tuple[int, str, str]:
    """As people call it: kubectl finds the plugin in PATH. Exit code, output and errors."""
    done = subprocess.run(
        ["kubectl", "glass", *words, f"--kubeconfig={plane.kubeconfig}"],
        env={**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_why_trace_and_describe_of_a_pod_come_from_its_node(
    controlplane: ControlPlane, cluster_agent: Agent, people: None
) -> None:
    code, out, err = kubectl_glass(controlplane, "why", "web", "--as=jane")
    assert (code, err) == (0, "")
    assert out.startswith("default/web is ")
    assert "Ready accepted at API" in kubectl_glass(controlplane, "trace", "web")[1]
    assert kubectl_glass(controlplane, "describe", "default/web")[1].startswith("pod       default/web")


def test_a_pod_is_found_by_the_beginning_of_its_name(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    assert kubectl_glass(controlplane, "why", "we", "-n", "default")[1].startswith("default/web is ")


def test_without_the_right_to_see_pods_the_error_names_verb_and_resource(
    controlplane: ControlPlane, cluster_agent: Agent, people: None
) -> None:
    code, _, err = kubectl_glass(controlplane, "why", "web", "--as=mary")
    assert code == 1
    assert err.startswith("error: you need get on pods in namespace default: ")


def test_without_the_right_to_ask_nodes_the_error_names_verb_and_resource(
    controlplane: ControlPlane, cluster_agent: Agent, people: None
) -> None:
    code, _, err = kubectl_glass(controlplane, "why", "web", "--as=paul")
    assert code == 1
    assert err.startswith("error: you need get on nodes/proxy: ")


def test_an_unknown_pod_is_an_error_that_names_the_namespace(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    code, _, err = kubectl_glass(controlplane, "describe", "wbe")
    assert code == 1
    assert "no pod wbe in namespace default; did you mean default/web?" in err.replace("default/wbe", "wbe")


def test_a_pod_that_is_not_scheduled_has_the_schedulers_words(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("homeless", FOR_EVER, nodeName=None, nodeSelector={"no": "such"}))
    controlplane.wait_for("homeless", lambda found: found is not None and found.get("status", {}).get("conditions"))
    code, _, err = kubectl_glass(controlplane, "why", "homeless")
    assert code == 1
    assert "default/homeless has no node yet" in err
    assert "nodes are available" in err


def test_the_record_of_a_removed_pod_is_found_on_its_node(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("gone", FOR_EVER))
    controlplane.wait_for("gone", is_ready)
    controlplane.kubectl("delete", "pod", "gone", "--grace-period=1")
    controlplane.wait_for("gone", lambda found: found is None)
    code, out, err = kubectl_glass(controlplane, "trace", "gone")
    assert (code, err) == (0, "")
    assert out.startswith("default/gone")


def test_ps_lists_the_pods_of_the_namespace_with_their_nodes(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    code, out, err = kubectl_glass(controlplane, "ps")
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert rows[0][-1] == "NODE"
    assert [row[-1] for row in rows if row[0] == "default/web"] == [NODE]
    assert kubectl_glass(controlplane, "ps", "-n", "kube-system")[1] == "no pods\n"


def test_ps_of_all_nodes_says_which_did_not_answer(
    controlplane: ControlPlane, cluster_agent: Agent, silent_node: str, people: None
) -> None:
    code, out, err = kubectl_glass(controlplane, "ps", "--all-nodes", "--as=jane", "-o", "json")
    assert "web" in {row["name"] for row in json.loads(out)["pods"]}
    assert {row["node"] for row in json.loads(out)["pods"]} == {NODE}
    assert code == 3
    assert f"  {silent_node} does not answer: dial tcp 198.18.255.254:1: connect: connection refused" in err


def test_nodes_shows_each_node_and_why_it_is_as_it_is(
    controlplane: ControlPlane, cluster_agent: Agent, silent_node: str
) -> None:
    code, out, _ = kubectl_glass(controlplane, "nodes")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert lines[NODE].split()[1] == "fine"
    assert "does not answer" in lines[silent_node]
    assert code == 3


def test_a_question_for_one_node_goes_to_the_named_one(
    controlplane: ControlPlane, cluster_agent: Agent, silent_node: str
) -> None:
    assert kubectl_glass(controlplane, "why", "node", "--node", NODE)[1].startswith(f"{NODE} is Ready")
    code, _, err = kubectl_glass(controlplane, "why", "node", "--node", silent_node)
    assert (code, err.split(":")[1]) == (3, f" {silent_node} does not answer")
    code, _, err = kubectl_glass(controlplane, "why", "node")
    assert code == 1
    assert f"name it with --node: {NODE}, {silent_node}" in err


def test_waits_are_those_of_the_namespace(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    code, out, err = kubectl_glass(controlplane, "waits", "-o", "json")
    assert (code, err) == (0, "")
    assert all(row["pod"].startswith("default/") for row in json.loads(out)["waits"])


def test_kubectl_completes_pods(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    done = subprocess.run(
        [PROGRAMS / "kubectl_complete-glass", f"--kubeconfig={controlplane.kubeconfig}", "why", "we"],
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().splitlines() == ["web", ":4"]


def test_a_configuration_that_kubectl_cannot_use_is_one_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [PROGRAMS / "kubectl-glass", "nodes", f"--kubeconfig={tmp_path / 'none'}"], capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"error: " in done.stderr
    assert b"Traceback" not in done.stderr


def test_why_without_a_name_lists_what_is_wrong_on_all_nodes(
    controlplane: ControlPlane, cluster_agent: Agent, silent_node: str
) -> None:
    controlplane.apply(api_pod("broken", "exit 7"))
    controlplane.wait_for("broken", lambda found: "CrashLoopBackOff" in json.dumps(found))
    code, out, err = kubectl_glass(controlplane, "why", "--all-nodes")
    controlplane.kubectl("delete", "pod", "broken", "--grace-period=0", "--force")
    assert "default/broken keeps failing" in out
    assert code == 5
    assert f"{silent_node} does not answer" in err


def test_a_pod_is_held_and_let_go_from_anywhere(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    assert kubectl_glass(controlplane, "break", "sandbox", "--pod", "default/held-*", "--node", NODE)[::2] == (0, "")
    controlplane.apply(api_pod("held-1", FOR_EVER))
    controlplane.wait_for_event("held-1", "PodHeld")
    assert "held at sandbox" in kubectl_glass(controlplane, "ps")[1]
    assert kubectl_glass(controlplane, "continue", "held-1")[0] == 0
    controlplane.wait_for("held-1", is_ready)
    code, _, err = kubectl_glass(controlplane, "unbreak", "--all", "--node", NODE)
    assert (code, err) == (0, "")


def test_who_may_only_read_cannot_hold_a_pod(controlplane: ControlPlane, cluster_agent: Agent, people: None) -> None:
    code, _, err = kubectl_glass(controlplane, "break", "sandbox", "--pod", "default/web", "--as=jane")
    assert code == 1
    assert err.startswith("error: you need create on nodes/proxy: ")


def test_calls_of_a_pod_are_traced_from_anywhere(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    code, out, err = kubectl_glass(controlplane, "calls", "web", "--for", "1s", "-o", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["name"] == "web"


@pytest.fixture
def page_address(controlplane: ControlPlane, cluster_agent: Agent) -> Iterator[str]:
    """What `kubectl glass web` prints."""
    command = ["kubectl", "glass", "web", NODE, "--no-browser", f"--kubeconfig={controlplane.kubeconfig}"]
    path = f"{PROGRAMS}:{os.environ['PATH']}"
    with subprocess.Popen(command, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        yield program.stdout.readline().strip()
        program.terminate()
        assert program.wait(30) == 0


async def test_the_page_of_a_node_is_served_through_the_api_server(page_address: str) -> None:
    address, _, token = page_address.partition("/glass/#token=")
    header = {"X-Glasslet": "1"}
    async with ClientSession(address, cookie_jar=CookieJar(unsafe=True)) as browser:
        for place in ("/glass/v1/pods", "/containerLogs/default/web/main", "/glass/live"):
            async with browser.get(place) as refused:
                assert refused.status == 401
        async with browser.post("/glass/session", json={"token": token}, headers=header) as session:
            assert session.status == 200
        async with browser.get("/glass/") as document:
            assert '<script type="module" src="page.js">' in await document.text()
        async with browser.get("/glass/live?view=pods") as stream:
            assert stream.headers["Content-Type"].startswith("text/event-stream")
            state = b""
            while b"\n\n" not in state:
                state += await stream.content.readany()
            assert b'"logs":"kubelet"' in state
        async with browser.get("/containerLogs/default/web/main?tailLines=1") as log:
            assert log.status == 200
        at = {"at": "sandbox", "pod": "x/y"}
        async with browser.post("/glass/v1/breaks", json=at, headers=header) as row:
            assert row.status == 200
        async with browser.delete("/glass/v1/breaks", headers=header) as removed:
            assert removed.status == 200


def test_the_page_of_a_node_that_does_not_answer_is_not_served(
    controlplane: ControlPlane, cluster_agent: Agent, silent_node: str
) -> None:
    code, out, err = kubectl_glass(controlplane, "web", silent_node, "--no-browser")
    assert (code, out) == (3, "")
    assert silent_node in err
