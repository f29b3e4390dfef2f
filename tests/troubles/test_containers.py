"""Troubles of containers: how they end, what kills them, why they cannot be created or started."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from glasslet.answers.states import Rule
from tests.fakes.agent import busybox_pod
from tests.fakes.containerd import BUSYBOX, NAMED_USER, PrivateContainerd
from tests.troubles.table import Plain, Trouble, chosen, each_chosen
from tests.troubles.world import World, standalone_world

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

AREA = "Containers"
FOR_EVER = "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"


def runs(name: str, shell: str, /, **container: Any) -> Any:
    """The manifest of a pod whose container runs a shell command."""

    def manifest(_: World) -> Plain:
        made = busybox_pod(name, shell)
        made["spec"]["containers"][0] |= container
        return made

    return manifest


def spec(name: str, command: str = FOR_EVER, **fields: Any) -> Any:
    """The manifest of a pod with these fields in its spec."""
    return lambda _: busybox_pod(name, command, **fields)


def exits(code: int, meaning: str, *, quick: bool = False, command: str = "", name: str = "") -> Trouble:
    """A container that ends with this code again and again."""
    name = name or f"exit-{code}"
    return Trouble(
        name=name,
        made=f"the command ends with code {code}",
        rule=Rule.CRASH_BACK_OFF,
        says=(f"exited with code {code}", meaning, "restarted"),
        pod=runs(name, command or f"echo leaving; exit {code}"),
        quick=quick,
    )


PROBE = {"periodSeconds": 1, "failureThreshold": 2, "terminationGracePeriodSeconds": 1}
FAILS = {"exec": {"command": ["sh", "-c", "echo no pulse; exit 3"]}, **PROBE}
TROUBLES = (
    exits(1, "main container main", quick=True),
    exits(126, "cannot be executed", command="exec /etc/passwd"),
    exits(127, "was not found", command="no-such-program"),
    exits(137, "signal KILL, not sent by this agent", command="kill -9 $$; exit 137", name="exit-137"),
    exits(139, "a segmentation fault", command="exit 139"),
    exits(143, "signal TERM, not sent by this agent", command="exit 143"),
    Trouble(
        name="done",
        made="the command ends with code 0, restart policy Always",
        rule=Rule.CRASH_BACK_OFF,
        says=("exited with code 0", "restarted"),
        pod=runs("done", "true"),
    ),
    Trouble(
        name="out-of-memory",
        made="a container uses more than its memory limit",
        rule=Rule.CRASH_BACK_OFF,
        says=("OOMKilled", "memory limit is 16Mi"),
        pod=runs(
            "out-of-memory",
            "x=a; while :; do x=$x$x; done",
            resources={"limits": {"memory": "16Mi"}},
        ),
        quick=True,
    ),
    Trouble(
        name="liveness",
        made="a liveness probe fails",
        rule=Rule.CRASH_BACK_OFF,
        says=("was killed because its liveness probe failed", "2 of 2 failures"),
        pod=runs("liveness", FOR_EVER, livenessProbe=FAILS),
        quick=True,
    ),
    Trouble(
        name="startup",
        made="a startup probe fails",
        rule=Rule.CRASH_BACK_OFF,
        says=("was killed because its startup probe failed",),
        pod=runs("startup", FOR_EVER, startupProbe=FAILS),
    ),
    Trouble(
        name="readiness",
        made="a readiness probe fails: nothing listens on the port",
        rule=Rule.NOT_READY,
        says=("the readiness probe of main does not pass", "refused"),
        pod=runs("readiness", FOR_EVER, readinessProbe={"tcpSocket": {"port": 81}, "periodSeconds": 1}),
        quick=True,
    ),
    Trouble(
        name="bad-command",
        made="the command does not exist in the image",
        rule=Rule.CONFIG_ERROR,
        says=("its command /no-such-program does not exist in the image",),
        pod=runs("bad-command", "", command=["/no-such-program"]),
        quick=True,
    ),
    Trouble(
        name="no-permission",
        made="the command is a file that cannot be executed",
        rule=Rule.CONFIG_ERROR,
        says=("its command /etc/passwd cannot be executed (permission denied)",),
        pod=runs("no-permission", "", command=["/etc/passwd"]),
    ),
    Trouble(
        name="bad-working-dir",
        made="the working directory is a file",
        rule=Rule.CONFIG_ERROR,
        says=("its working directory /etc/passwd cannot be used: not a directory",),
        pod=runs("bad-working-dir", "true", workingDir="/etc/passwd"),
    ),
    Trouble(
        name="root-user",
        made="runAsNonRoot with an image that runs as root",
        rule=Rule.CONFIG_ERROR,
        says=("it must not run as root (runAsNonRoot), and its image runs as root",),
        pod=runs("root-user", FOR_EVER, securityContext={"runAsNonRoot": True}),
        quick=True,
    ),
    Trouble(
        name="named-user",
        made="runAsNonRoot with an image whose user is a name",
        rule=Rule.CONFIG_ERROR,
        says=("non-numeric user", "nobody"),
        pod=runs("named-user", FOR_EVER, image=NAMED_USER, securityContext={"runAsNonRoot": True}),
    ),
    Trouble(
        name="read-only-root",
        made="the command writes to a root filesystem that is read-only",
        rule=Rule.CRASH_BACK_OFF,
        says=("exited with code 1", "Read-only file system"),
        pod=runs("read-only-root", "echo x > /file", securityContext={"readOnlyRootFilesystem": True}),
    ),
    Trouble(
        name="post-start",
        made="the postStart hook fails",
        rule=Rule.POST_START_HOOK,
        says=("its postStart hook failed",),
        pod=runs("post-start", FOR_EVER, lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "exit 4"]}}}),
    ),
    Trouble(
        name="init-failed",
        made="an init container ends with code 5, restart policy Never",
        rule=Rule.FAILED,
        says=("init container first", "exited with code 5"),
        pod=spec(
            "init-failed",
            restartPolicy="Never",
            initContainers=[{"name": "first", "image": BUSYBOX, "command": ["sh", "-c", "echo no; exit 5"]}],
        ),
    ),
    Trouble(
        name="init-crashes",
        made="an init container ends with code 6 again and again",
        rule=Rule.CRASH_BACK_OFF,
        says=("init container first", "exited with code 6"),
        pod=spec(
            "init-crashes",
            initContainers=[{"name": "first", "image": BUSYBOX, "command": ["sh", "-c", "echo no; exit 6"]}],
        ),
    ),
    Trouble(
        name="init-waits",
        made="an init container waits for something",
        rule=Rule.INIT_NOT_FINISHED,
        says=("init container first (1 of 1)", "since"),
        pod=spec(
            "init-waits",
            initContainers=[{"name": "first", "image": BUSYBOX, "command": ["sh", "-c", "echo waiting; sleep 1000"]}],
        ),
        quick=True,
    ),
    Trouble(
        name="sidecar",
        made="the startup probe of a sidecar does not pass",
        rule=Rule.SIDECAR_NOT_STARTED,
        says=("startup probe of sidecar beside",),
        pod=spec(
            "sidecar",
            initContainers=[
                {
                    "name": "beside",
                    "image": BUSYBOX,
                    "command": ["sh", "-c", FOR_EVER],
                    "restartPolicy": "Always",
                    "startupProbe": {"tcpSocket": {"port": 81}, "periodSeconds": 1, "failureThreshold": 1000},
                }
            ],
        ),
    ),
    Trouble(
        name="never-again",
        made="a container ends with code 2, restart policy Never",
        rule=Rule.FAILED,
        says=("container main exited with code 2", "Never", 'saying "over"'),
        pod=spec("never-again", "echo over; exit 2", restartPolicy="Never"),
    ),
    Trouble(
        name="one-ended",
        made="one of two containers ends with code 7, restart policy Never",
        rule=Rule.ENDED_CONTAINER,
        says=("container main", "exited with code 7"),
        pod=lambda _: _two_containers(),
    ),
    Trouble(
        name="deadline",
        made="activeDeadlineSeconds passes",
        rule=Rule.FAILED,
        says=("its deadline passed (activeDeadlineSeconds 3)",),
        pod=spec("deadline", activeDeadlineSeconds=3),
    ),
    Trouble(
        name="mount-over-file",
        made="a mount of a path in the container that is a file",
        rule=Rule.CONFIG_ERROR,
        says=("a volume cannot be mounted at /etc/passwd",),
        pod=lambda _: _mount_over_file(),
    ),
)


def from_folder(name: str, file: str) -> Any:
    """A pod whose command is a file of the world's folder."""

    def manifest(world: World) -> Plain:
        made = busybox_pod(name, volumes=[{"name": "v", "hostPath": {"path": str(world.folder / "folder")}}])
        mounted = [{"name": "v", "mountPath": "/x"}]
        made["spec"]["containers"][0] |= {"command": [f"/x/{file}"], "volumeMounts": mounted}
        return made

    return manifest


def _private_mount(world: World) -> Plain:
    source = {"hostPath": {"path": str(world.folder / "private")}}
    made = busybox_pod("mount-not-shared", volumes=[{"name": "v", **source}])
    mounted = [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}]
    made["spec"]["containers"][0] |= {"volumeMounts": mounted, "securityContext": {"privileged": True}}
    return made


def _init_out_of_memory() -> Plain:
    made = busybox_pod("init-out-of-memory")
    grows = ["sh", "-c", "x=a; while :; do x=$x$x; done"]
    limits = {"resources": {"limits": {"memory": "16Mi"}}}
    made["spec"]["initContainers"] = [{"name": "first", "image": BUSYBOX, "command": grows, **limits}]
    return made


def strange(name: str, made: str, rule: Rule, *says: str, pod: Any) -> Trouble:
    """A container that a stranger would come with."""
    return Trouble(name=name, made=made, rule=rule, says=says, pod=pod)


SECCOMP = {"seccompProfile": {"type": "Localhost", "localhostProfile": "none.json"}}
SLOW = {"exec": {"command": ["sleep", "20"]}, "periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 1}
LATER = (
    strange("foreign-program", "the command is a program for another architecture", Rule.CRASH_BACK_OFF,
            "its command /x/foreign is a program for another architecture",
            pod=from_folder("foreign-program", "foreign")),
    strange("no-interpreter", "the command is a script with the line ends of Windows", Rule.CRASH_BACK_OFF,
            "/x/crlf is run by does not exist: the interpreter", pod=from_folder("no-interpreter", "crlf")),
    strange("memory-too-low", "the memory limit is too small to start anything", Rule.CONFIG_ERROR,
            "its memory limit (256Ki) is too small to start a process",
            pod=runs("memory-too-low", FOR_EVER, resources={"limits": {"memory": "256Ki"}})),
    strange("no-seccomp-profile", "the seccomp profile is not on the node", Rule.CONFIG_ERROR,
            "its seccomp profile ", "none.json does not exist on this node",
            pod=runs("no-seccomp-profile", FOR_EVER, securityContext=SECCOMP)),
    strange("termination-folder", "terminationMessagePath is a folder of the image", Rule.CONFIG_ERROR,
            "its terminationMessagePath /etc is a folder in the image",
            pod=runs("termination-folder", FOR_EVER, terminationMessagePath="/etc")),
    strange("relative-working-dir", "the working directory is no absolute path", Rule.CRASH_BACK_OFF,
            "could not be started: its working directory relative/path is no absolute path",
            pod=runs("relative-working-dir", FOR_EVER, workingDir="relative/path")),
    strange("mount-not-shared", "mountPropagation Bidirectional of a path on a private mount", Rule.CONFIG_ERROR,
            "wants mountPropagation, and its path ", "that is not shared", pod=_private_mount),
    strange("init-out-of-memory", "an init container uses more than its memory limit", Rule.CRASH_BACK_OFF,
            "init container first ran out of memory (OOMKilled; its memory limit is 16Mi)",
            pod=lambda _: _init_out_of_memory()),
    strange("liveness-slow", "a liveness probe does not end in time", Rule.CRASH_BACK_OFF,
            "was killed because its liveness probe failed (not done within 1s",
            pod=runs("liveness-slow", FOR_EVER, livenessProbe=SLOW)),
    strange("post-start-http", "the postStart hook asks a port at which no process listens", Rule.POST_START_HOOK,
            "no connection to ", ":9: Connection refused",
            pod=runs("post-start-http", FOR_EVER, lifecycle={"postStart": {"httpGet": {"port": 9, "path": "/"}}})),
    strange("user-namespace", "hostUsers is false, and the runtime has no user namespaces", Rule.SANDBOX,
            "hostUsers: false", "runtime does not support user namespaces",
            pod=spec("user-namespace", hostUsers=False)),
    strange("low-port", "a container without capabilities binds a port below 1024", Rule.CRASH_BACK_OFF,
            'saying "nc: bind: Permission denied"',
            pod=runs("low-port", "nc -l -p 80 -e cat",
                     securityContext={"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}})),
)  # fmt: skip


def prepare(world: World) -> None:
    """Commands that cannot be run, and a mount that is private."""
    folder = world.folder / "folder"
    folder.mkdir()
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(100)
    for name, content in (("foreign", header), ("crlf", b"#!/bin/sh\r\necho here\r\n")):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o755)
    (world.folder / "private").mkdir()
    command = ["mount", "-t", "tmpfs", "--make-private", "tmpfs", str(world.folder / "private")]
    subprocess.run(command, check=True)


def _two_containers() -> Plain:
    made = busybox_pod("one-ended", "exit 7", restartPolicy="Never")
    made["spec"]["containers"].append({"name": "other", "image": BUSYBOX, "command": ["sh", "-c", FOR_EVER]})
    return made


def _mount_over_file() -> Plain:
    made = busybox_pod("mount-over-file", FOR_EVER, volumes=[{"name": "v", "emptyDir": {}}])
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/etc/passwd"}]
    return made


@pytest.fixture(scope="module")
def world(containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with standalone_world(containerd, tmp_path_factory.mktemp("c")) as made:
        prepare(made)
        try:
            made.put(*chosen((*TROUBLES, *LATER)))
            yield made
        finally:
            subprocess.run(["umount", "-l", str(made.folder / "private")], check=True)


@each_chosen((*TROUBLES, *LATER))
def test_a_container_in_trouble_gets_its_cause(world: World, trouble: Trouble) -> None:
    world.shows(trouble)
