"""Fields of a pod on the real control plane and a real runtime: what the container finds, or what the refusal says.

All pods run at once. A telling one writes what it sees into its termination log and ends; its last words are compared.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from glasslet.host.machine import app_armor_enabled
from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import api_pod
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import NEWER, PrivateContainerd, shows_what_is_too_old
from tests.fakes.control_plane import ControlPlane, Plain, is_ready, phase

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

SECONDS = 200.0
STATUS_FIELD = "sed -n 's/^{}:[[:space:]]*//p' /proc/self/status"


class Telling(NamedTuple):
    """`script` prints, `says` is a pattern for all of it. `main` and `spec` are added to the container and the pod."""

    name: str
    script: str
    says: str
    main: Plain = {}
    spec: Plain = {}


class Refused(NamedTuple):
    """A pod that gets no container: an event or a waiting reason says why. `on_newer`: by containerd 2.x, too."""

    name: str
    says: str
    main: Plain = {}
    spec: Plain = {}
    on_newer: bool = True


def own(**context: Any) -> Plain:
    return {"securityContext": context}


TELLING = [
    Telling("user", "id -u; id -g", "1000 2000", own(runAsUser=1000, runAsGroup=2000)),
    Telling("groups", "id -G", "7 10 5000", own(runAsUser=7, runAsGroup=7), own(fsGroup=5000, supplementalGroups=[10])),
    Telling("non-root", "id -u", "65534", own(runAsUser=65534), own(runAsNonRoot=True)),
    Telling("no-caps", STATUS_FIELD.format("CapEff"), "0{16}", own(capabilities={"drop": ["ALL"]})),
    Telling(
        "one-cap",
        STATUS_FIELD.format("CapEff"),
        "0{12}0400",
        own(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    ),
    Telling("no-new-privileges", STATUS_FIELD.format("NoNewPrivs"), "1", own(allowPrivilegeEscalation=False)),
    Telling("new-privileges", STATUS_FIELD.format("NoNewPrivs"), "0"),
    Telling("read-only", "touch /here || echo no", "(?s).*no", own(readOnlyRootFilesystem=True)),
    Telling("filtered", STATUS_FIELD.format("Seccomp"), "2", own(seccompProfile={"type": "RuntimeDefault"})),
    Telling("unfiltered", STATUS_FIELD.format("Seccomp"), "0"),
    Telling(
        "masked",
        "for f in kcore keys timer_list sched_debug; do [ ! -e /proc/$f ] || wc -c </proc/$f; done | sort -u",
        "0",
    ),
    Telling(
        "sysctl",
        "cat /proc/sys/net/ipv4/ip_unprivileged_port_start",
        "80",
        spec=own(sysctls=[{"name": "net.ipv4.ip_unprivileged_port_start", "value": "80"}]),
    ),
    Telling(
        "names",
        "hostname; hostname -f; grep -c 'here.sub.default.svc.cluster.local.here$' /etc/hosts",
        "here here.sub.default.svc.cluster.local 1",
        spec={"hostname": "here", "subdomain": "sub"},
    ),
    Telling(
        "full-name",
        "hostname",
        "here.sub.default.svc.cluster.local",
        spec={"hostname": "here", "subdomain": "sub", "setHostnameAsFQDN": True},
    ),
    Telling(
        "aliases",
        "tail -n 1 /etc/hosts",
        "192.0.2.7 db db.example",
        spec={"hostAliases": [{"ip": "192.0.2.7", "hostnames": ["db", "db.example"]}]},
    ),
    Telling(
        "hosts-of-the-node",
        "head -n 1 /etc/hosts; tail -n 1 /etc/hosts",
        r"# Kubernetes-managed hosts file \(host network\)\. 192.0.2.7 db",
        spec={"hostNetwork": True, "hostAliases": [{"ip": "192.0.2.7", "hostnames": ["db"]}]},
    ),
    Telling(
        "own-resolver",
        "cat /etc/resolv.conf",
        "search one.example two.example nameserver 192.0.2.53 options ndots:2 edns0",
        spec={
            "dnsPolicy": "None",
            "dnsConfig": {
                "nameservers": ["192.0.2.53"],
                "searches": ["one.example", "two.example"],
                "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
            },
        },
    ),
    Telling("class", "echo runs", "runs", spec={"runtimeClassName": "plain"}),
    Telling(
        "recursive-if-possible",
        "grep -c ' /v ' /proc/mounts",
        "1",
        {"volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "IfPossible"}]},
        {"volumes": [{"name": "v", "emptyDir": {}}]},
    ),
    Telling("users-of-the-node", "cat /proc/self/uid_map", "0 0 4294967295", spec={"hostUsers": True}),
]

REFUSED = [
    Refused(
        "class-without-handler",
        'Failed to create pod sandbox: .*no runtime for "nowhere" is configured',
        spec={"runtimeClassName": "lost"},
    ),
    Refused(
        "users-of-its-own",
        "Failed to create pod sandbox: can't set `spec.hostUsers: false`, runtime does not support user namespaces",
        spec={"hostUsers": False},
        on_newer=False,
    ),
    Refused(
        "recursive",
        'volume "v" requested recursive read-only mode, but it is not supported by the runtime',
        {"volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "Enabled"}]},
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        on_newer=False,
    ),
    Refused(
        "root-user",
        r"container's runAsUser breaks non-root policy \(pod: \"root-user_default\(.*\)\", container: main\)",
        own(runAsUser=0),
        own(runAsNonRoot=True),
    ),
    Refused(
        "lost-profile", "(?i)seccomp", own(seccompProfile={"type": "Localhost", "localhostProfile": "not/there.json"})
    ),
]

REJECTED = [
    (
        "confined",
        own(appArmorProfile={"type": "RuntimeDefault"}),
        "AppArmor",
        "Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host",
    ),
    (
        "strict-groups",
        own(supplementalGroupsPolicy="Strict"),
        "SupplementalGroupsPolicyNotSupported",
        "Pod was rejected: SupplementalGroupsPolicy=Strict is not supported in this node",
    ),
    (
        "other-system",
        {"os": {"name": "windows"}, "nodeName": NODE},
        "PodOSNotSupported",
        "Pod was rejected: Failed to admit pod as the OS field doesn't match node OS",
    ),
]

CLASSES = [
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "plain"}, "handler": "runc"},
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "lost"}, "handler": "nowhere"},
]


@pytest.fixture(scope="module")
def agent(
    controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Agent]:
    """One for all tests, which name their pods differently."""
    folder = tmp_path_factory.mktemp("fields")
    made = cluster_member(controlplane, containerd, folder, clusterDomain="cluster.local")
    with joined(controlplane, containerd, made):
        controlplane.apply(*CLASSES)
        yield made


def pod_with(name: str, command: str, main: Plain, spec: Plain) -> Plain:
    made = api_pod(name, command, restartPolicy="Never", **spec)
    made["spec"]["containers"][0].update(main)
    return made


def telling_pod(one: Telling) -> Plain:
    return pod_with(one.name, f"({one.script}) >/dev/termination-log 2>&1", one.main, one.spec)


def ended(pod: Plain | None) -> Plain:
    """The terminated state of the container, {} before."""
    [status] = (pod or {}).get("status", {}).get("containerStatuses") or [{}]
    found: Plain = status.get("state", {}).get("terminated") or {}
    return found


def words(pod: Plain | None) -> str:
    """Last words with single blanks."""
    return " ".join(str(ended(pod).get("message", "")).split())


def said(controlplane: ControlPlane, name: str, pod: Plain | None) -> str:
    """All that is told of a pod that does not run."""
    statuses = (pod or {}).get("status", {}).get("containerStatuses") or []
    waiting = [one["state"].get("waiting", {}).get("message", "") for one in statuses]
    return "\n".join((*waiting, *(message for _, message in controlplane.events(name))))


def test_containers_find_what_their_pods_ask_for(controlplane: ControlPlane, agent: Agent) -> None:
    controlplane.apply(*map(telling_pod, TELLING))
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = controlplane.pods()
        if all(phase(found.get(one.name)) in ("Succeeded", "Failed") for one in TELLING):
            break
        time.sleep(0.5)
    wrong = {
        one.name: (phase(found.get(one.name)), words(found.get(one.name)), one.says)
        for one in TELLING
        if not re.fullmatch(one.says, words(found.get(one.name)))
    }
    assert wrong == {}


def test_what_cannot_be_had_is_refused_with_its_reason(controlplane: ControlPlane, agent: Agent) -> None:
    refused = [one for one in REFUSED if one.on_newer or not NEWER]
    controlplane.apply(*(pod_with(one.name, "true", one.main, one.spec) for one in refused))
    wrong = {one.name: "" for one in refused}
    deadline = time.monotonic() + SECONDS
    while wrong and time.monotonic() < deadline:
        found = controlplane.pods()
        for one in refused:
            if one.name in wrong:
                wrong[one.name] = said(controlplane, one.name, found.get(one.name))
                if re.search(one.says, wrong[one.name]):
                    del wrong[one.name]
        time.sleep(0.5)
    assert wrong == {}
    found = controlplane.pods()
    assert {phase(found[one.name]) for one in refused} == {"Pending"}


def test_what_the_node_cannot_do_is_rejected(controlplane: ControlPlane, agent: Agent) -> None:
    # behaviours.md §14: "AppArmor not usable: reason AppArmor, message `Cannot enforce AppArmor: <why>`."
    possible = {"confined": app_armor_enabled(), "strict-groups": NEWER}
    wanted = [one for one in REJECTED if not possible.get(one[0])]
    controlplane.apply(*(pod_with(name, "true", {}, spec) for name, spec, _, _ in wanted))
    for name, _, reason, message in wanted:
        found = controlplane.wait_for(name, lambda pod: phase(pod) == "Failed", seconds=SECONDS)
        assert found is not None
        assert (found["status"]["reason"], found["status"]["message"]) == (reason, message)


@shows_what_is_too_old
def test_a_checkpoint_that_the_runtime_cannot_make_is_refused_in_its_words(
    controlplane: ControlPlane, agent: Agent
) -> None:
    controlplane.apply(api_pod("frozen"))
    controlplane.wait_for("frozen", is_ready)
    path = f"/api/v1/nodes/{NODE}/proxy/checkpoint/default/frozen/main"
    said = controlplane.kubectl("create", "--raw", path, "-f", "-", stdin="{}", check=False)
    assert "checkpointing of default/frozen/main failed" in said
    assert "CheckpointContainer" in said


HUNGRY = ("hungry", "hungry-again", "hungry-still")
"""The runtime hears of the kill and of the end on two ways: when the end comes first, it knows no reason."""


def test_a_container_above_its_memory_limit_is_reported_oom_killed(controlplane: ControlPlane, agent: Agent) -> None:
    # behaviours.md §5: "Reason, message, exit code and times of a termination are the runtime's (Completed, Error,
    # OOMKilled, ...); signal is never set."
    limited = {"resources": {"limits": {"memory": "24Mi", "cpu": "1"}}, "command": ["tail", "/dev/zero"]}
    for name in HUNGRY:
        controlplane.apply(pod_with(name, "", limited, {}))
        found = controlplane.wait_for(name, lambda pod: phase(pod) == "Failed", seconds=SECONDS)
        if ended(found).get("reason") == "OOMKilled":
            break
    assert (ended(found).get("reason"), ended(found).get("exitCode")) == ("OOMKilled", 137)
    assert "signal" not in ended(found)


def test_an_init_container_above_its_limit_is_reported_too_and_the_pod_fails(
    controlplane: ControlPlane, agent: Agent
) -> None:
    # behaviours.md §3: "Reason OOMKilled counts as failed even with exit code 0."
    limits = {"limits": {"memory": "24Mi", "cpu": "1"}}
    for name in HUNGRY:
        pod = pod_with(f"{name}-init", "true", {}, {})
        hungry = pod["spec"]["containers"][0] | {"name": "eats", "resources": limits, "command": ["tail", "/dev/zero"]}
        pod["spec"]["initContainers"] = [hungry]
        controlplane.apply(pod)
        found = controlplane.wait_for(f"{name}-init", lambda pod: phase(pod) == "Failed", seconds=SECONDS)
        assert found is not None
        [status] = found["status"]["initContainerStatuses"]
        if status["state"]["terminated"]["reason"] == "OOMKilled":
            break
    assert (status["state"]["terminated"]["reason"], status["state"]["terminated"]["exitCode"]) == ("OOMKilled", 137)
    assert found is not None
    [main] = found["status"]["containerStatuses"]
    assert main["state"]["waiting"]["reason"] == "PodInitializing"
