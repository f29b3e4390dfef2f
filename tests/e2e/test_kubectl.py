"""What people do with kubectl, on a node whose server asks the API server who may do what."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import api_pod, processes, unmistakable, wait_until
from tests.fakes.agent import FOR_EVER, NODE, Agent, free_port
from tests.fakes.containerd import BUSYBOX, PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain, is_ready, phase
from tests.fakes.terminal import Terminal

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

TALKER = "i=0; trap 'exit 0' TERM; while :; do echo line $i; i=$((i+1)); sleep 0.2; done"


@pytest.fixture(scope="module")
def cluster_agent(
    controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Agent]:
    """One agent for all of these: both checks of its callers are the API server's."""
    agent = cluster_member(
        controlplane,
        containerd,
        tmp_path_factory.mktemp("k"),
        authentication={
            "x509": {"clientCAFile": controlplane.ca},
            "webhook": {"enabled": True},
            "anonymous": {"enabled": False},
        },
        authorization={"mode": "Webhook"},
    )
    with joined(controlplane, containerd, agent):
        yield agent
        assert controlplane.refusals() == []


@pytest.fixture(scope="module")
def shell(controlplane: ControlPlane, cluster_agent: Agent) -> str:
    """The name of a running pod that many tests go into."""
    controlplane.apply(api_pod("shell", "echo started; " + FOR_EVER))
    controlplane.wait_for("shell", is_ready)
    return "shell"


@contextmanager
def kubectl(plane: ControlPlane, verb: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """One that goes on while the body does other things."""
    with subprocess.Popen(
        ["kubectl", verb, "--kubeconfig", plane.kubeconfig, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        try:
            yield running
        except BaseException:
            running.kill()
            raise


def exit_code(plane: ControlPlane, verb: str, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    """Exit code, output and errors."""
    with kubectl(plane, verb, *arguments) as running:
        out, err = running.communicate(stdin, timeout=150)
        return running.returncode, out, err


def test_run_makes_a_pod_that_runs(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.kubectl("run", "ran", f"--image={BUSYBOX}", "--restart=Never", "--", "sh", "-c", FOR_EVER)
    found = controlplane.wait_for("ran", is_ready)
    assert found is not None
    line = controlplane.kubectl("get", "pod", "ran", "-o", "wide", "--no-headers").split()
    assert line[:4] == ["ran", "1/1", "Running", "0"]
    assert line[5:7] == [found["status"]["podIP"], NODE]
    mounted = controlplane.kubectl("exec", "ran", "--", "ls", "/var/run/secrets/kubernetes.io/serviceaccount")
    assert mounted.split() == ["ca.crt", "namespace", "token"]


def test_run_with_rm_and_stdin_gives_the_output_of_the_command(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    arguments = ("once", f"--image={BUSYBOX}", "--restart=Never", "-i", "--rm", "--quiet", "--", "sh", "-c")
    code, out, err = exit_code(controlplane, "run", *arguments, "cat; exit 3", stdin=b"some words\n")
    assert (code, out) == (3, b"some words\n"), err
    controlplane.wait_for("once", lambda found: found is None)


def test_describe_shows_the_events_of_a_start_in_their_order(controlplane: ControlPlane, shell: str) -> None:
    for reason in ("Scheduled", "Pulled", "Created", "Started"):
        controlplane.wait_for_event(shell, reason)
    text = controlplane.kubectl("describe", "pod", shell)
    events = re.findall(r"^  Normal\s+(\w+)", text.partition("Events:")[2], re.MULTILINE)
    assert events == ["Scheduled", "Pulled", "Created", "Started"]
    assert re.search(r"^Node: +node-a/198\.18\.", text, re.MULTILINE)
    assert re.search(r"^QoS Class: +BestEffort$", text, re.MULTILINE)


def test_describe_node_counts_its_pods(controlplane: ControlPlane, shell: str) -> None:
    text = controlplane.kubectl("describe", "node", NODE)
    assert re.search(r"^  Ready +True .* KubeletReady ", text, re.MULTILINE)
    assert re.search(rf"^  default +{shell} ", text, re.MULTILINE)
    assert re.search(r"^  Kubelet Version: +v1\.34\.", text, re.MULTILINE)


def test_followed_logs_come_as_they_are_written_and_end_with_the_container(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    command = "echo first; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo second"
    controlplane.apply(api_pod("counts", command, restartPolicy="Never"))
    controlplane.wait_for("counts", is_ready)
    with kubectl(controlplane, "logs", "-f", "counts") as following:
        assert following.stdout is not None
        assert following.stdout.readline() == b"first\n"
        controlplane.kubectl("exec", "counts", "--", "touch", "/tmp/go")
        assert following.stdout.read() == b"second\n"
        assert following.wait(60) == 0


def test_logs_of_the_instance_before(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    """Only the first instance ends."""
    command = f"cat /proc/sys/kernel/random/uuid; test -e /shared/was || {{ touch /shared/was; exit 1; }}; {FOR_EVER}"
    body = api_pod("again", command, volumes=[{"name": "shared", "emptyDir": {}}])
    body["spec"]["containers"][0]["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
    controlplane.apply(body)
    controlplane.wait_for(
        "again", lambda found: found and restarts(found) == 1 and "running" in container(found)["state"]
    )
    wait_until(lambda: controlplane.kubectl("logs", "again"))
    now = controlplane.kubectl("logs", "again")
    before = controlplane.kubectl("logs", "again", "--previous")
    assert len(now) == len(before) == 37
    assert now != before


def test_logs_of_an_instance_that_never_was_are_an_error(controlplane: ControlPlane, shell: str) -> None:
    code, _, err = exit_code(controlplane, "logs", shell, "--previous")
    assert code == 1
    assert b'previous terminated container "main" in pod "shell" not found' in err


def test_logs_can_be_cut_by_time_lines_and_bytes(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("talker", TALKER))
    controlplane.wait_for("talker", is_ready)
    # Until it has written for longer than that.
    recent: list[str] = []
    deadline = time.monotonic() + 120
    while recent[:1] in ([], ["line 0"]):
        assert time.monotonic() < deadline, recent
        recent = controlplane.kubectl("logs", "talker", "--since=3s").splitlines()
    everything = controlplane.kubectl("logs", "talker").splitlines()
    assert 0 < len(recent) < len(everything)
    assert everything[0] == "line 0"
    assert len(controlplane.kubectl("logs", "talker", "--tail=2").splitlines()) == 2
    assert controlplane.kubectl("logs", "talker", "--limit-bytes=10") == "line 0\nlin"
    assert re.match(r"\d{4}-\d\d-\d\dT\S+ line", controlplane.kubectl("logs", "talker", "--timestamps", "--tail=1"))


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_exec_ends_with_the_code_of_the_command(controlplane: ControlPlane, shell: str, code: int) -> None:
    assert exit_code(controlplane, "exec", shell, "--", "sh", "-c", f"echo out; echo err >&2; exit {code}")[:2] == (
        code,
        b"out\n",
    )


def test_exec_of_a_program_that_is_not_there_fails(controlplane: ControlPlane, shell: str) -> None:
    code, _, err = exit_code(controlplane, "exec", shell, "--", "/no/such/program")
    assert code != 0
    assert b"/no/such/program" in err


def test_exec_passes_stdin_until_its_end(controlplane: ControlPlane, shell: str) -> None:
    data = bytes(range(256)) * 4096
    code, out, err = exit_code(controlplane, "exec", "-i", shell, "--", "cat", stdin=data)
    assert (code, err) == (0, b"")
    assert out == data


def test_files_are_copied_both_ways(controlplane: ControlPlane, shell: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "big").write_bytes(bytes(range(256)) * 8192)
    (tmp_path / "there" / "small").write_text("words")
    controlplane.kubectl("cp", str(tmp_path / "there"), f"{shell}:/tmp/copied")
    controlplane.kubectl("cp", f"{shell}:/tmp/copied", str(tmp_path / "back"))
    assert (tmp_path / "back" / "big").read_bytes() == (tmp_path / "there" / "big").read_bytes()
    assert (tmp_path / "back" / "small").read_text() == "words"


def test_port_forward_reaches_a_server_of_the_pod(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    command = "mkdir /www; echo page > /www/index.html; exec httpd -f -p 127.0.0.1:8080 -h /www"
    controlplane.apply(api_pod("serves", command))
    controlplane.wait_for("serves", is_ready)
    page_inside = ("exec", "serves", "--", "wget", "-q", "-O", "-", "http://127.0.0.1:8080/index.html")
    wait_until(lambda: controlplane.kubectl(*page_inside, check=False) == "page\n")
    port = free_port()
    with kubectl(controlplane, "port-forward", "pod/serves", f"{port}:8080") as forwarding:
        assert forwarding.stdout is not None
        assert b"Forwarding from" in forwarding.stdout.readline()
        for _ in range(3):
            with urlopen(f"http://127.0.0.1:{port}/index.html", timeout=60) as page:
                assert page.read() == b"page\n"
        forwarding.send_signal(signal.SIGINT)


def test_attach_reads_what_comes_and_writes_to_stdin(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    body = api_pod("echoes", 'while read line; do echo "got $line"; done; echo over', restartPolicy="Never")
    body["spec"]["containers"][0] |= {"stdin": True, "stdinOnce": True}
    controlplane.apply(body)
    controlplane.wait_for("echoes", is_ready)
    code, out, err = exit_code(controlplane, "attach", "-i", "echoes", "-c", "main", stdin=b"one\ntwo\n")
    assert code == 0, err
    assert out.splitlines()[-3:] == [b"got one", b"got two", b"over"]
    controlplane.wait_for("echoes", lambda found: phase(found) == "Succeeded")


def test_debug_adds_a_container_that_sees_the_processes_of_its_target(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    controlplane.apply(api_pod("patient", "trap 'exit 0' TERM; while :; do sleep 777; done"))
    controlplane.wait_for("patient", is_ready)
    arguments = ("patient", f"--image={BUSYBOX}", "--target=main", "-c", "doctor", "--profile=general", "--quiet", "--")
    controlplane.kubectl("debug", *arguments, "sh", "-c", "ps; exit 5")

    def ended(found: Plain | None) -> bool:
        statuses = (found or {}).get("status", {}).get("ephemeralContainerStatuses", [])
        return bool(statuses) and "terminated" in statuses[0]["state"]

    found = controlplane.wait_for("patient", ended)
    assert found is not None
    assert found["status"]["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 5
    assert "sleep 777" in controlplane.kubectl("logs", "patient", "-c", "doctor")
    assert is_ready(found)
    assert restarts(found) == 0


def test_delete_waits_for_the_grace_and_no_longer(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    """It is shorter than the pod's own, which `kubectl` would not wait for."""
    marker = unmistakable(4)
    command = f"trap '' TERM; while :; do {marker}; done"
    controlplane.apply(api_pod("stubborn", command, terminationGracePeriodSeconds=300))
    controlplane.wait_for("stubborn", is_ready)
    wait_until(lambda: processes(marker))
    began = time.monotonic()
    controlplane.kubectl("delete", "pod", "stubborn", "--grace-period=4")
    assert time.monotonic() - began >= 4
    assert not processes(marker)


def test_delete_now_takes_no_more_than_the_smallest_grace(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("hurried", "trap '' TERM; while :; do sleep 1; done", terminationGracePeriodSeconds=300))
    controlplane.wait_for("hurried", is_ready)
    controlplane.kubectl("delete", "pod", "hurried", "--now")


def test_the_proxy_of_the_node_answers(controlplane: ControlPlane, shell: str) -> None:
    def raw(path: str) -> str:
        return controlplane.kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/{path}")

    assert raw("healthz") == "ok"
    assert json.loads(raw("configz"))["kubeletconfig"]["authorization"]["mode"] == "Webhook"
    pods = json.loads(raw("pods"))
    assert pods["kind"] == "PodList"
    assert shell in {pod["metadata"]["name"] for pod in pods["items"]}
    counted = ("pod_start_sli_duration_seconds", "pod_worker_start_duration_seconds", "containers_per_pod_count")
    wanted = ["running_pods", 'started_containers_total{container_type="container"}', *(f"{n}_count" for n in counted)]

    def all_counted() -> bool:
        metrics = raw("metrics")
        return all(re.search(rf"^kubelet_{re.escape(name)} [1-9]", metrics, re.MULTILINE) for name in wanted)

    # Some are when the API server has told of the pod's start.
    wait_until(all_counted)
    assert "kubernetes_build_info{" in raw("metrics")
    assert json.loads(raw("stats/summary"))["node"]["nodeName"] == NODE
    wait_until(lambda: "container_cpu_usage_seconds_total" in raw("metrics/cadvisor"))


def container(found: Plain) -> Plain:
    """The status of the only container."""
    statuses: list[Plain] = found.get("status", {}).get("containerStatuses") or [{"state": {}, "restartCount": 0}]
    return statuses[0]


def restarts(found: Plain) -> int:
    return int(container(found)["restartCount"])


def test_exec_with_a_terminal_follows_its_size_and_gives_the_exit_code(controlplane: ControlPlane, shell: str) -> None:
    command = ("kubectl", "exec", "-it", shell, "--kubeconfig", controlplane.kubeconfig, "--", "sh")
    with closing(Terminal(*command, rows=33, columns=101)) as terminal:
        terminal.wait_for("# ")
        terminal.type("tty; stty size\n")
        terminal.wait_for("/dev/pts/")
        # The size comes on a stream of its own, at any time after the shell's first words.
        terminal.type("while [ \"$(stty size)\" != '33 101' ]; do sleep 0.1; done; echo first-$((1 + 1))\n")
        terminal.wait_for("first-2")
        terminal.resize(44, 122)
        terminal.type("while [ \"$(stty size)\" != '44 122' ]; do sleep 0.1; done; echo then-$((1 + 2))\n")
        terminal.wait_for("then-3")
        # A key that is pressed while the shell turns the line editor off or on may be lost.
        terminal.type("sh -c 'echo sleeps-$((2 + 3)); sleep 1000'\n")
        terminal.wait_for("sleeps-5")
        terminal.screen = ""
        terminal.type("\x03")
        terminal.wait_for("# ")
        terminal.type("echo interrupted-$((1 + 3))\n")
        terminal.wait_for("interrupted-4")
        terminal.type("exit 7\n")
        assert terminal.exit_code() == 7
