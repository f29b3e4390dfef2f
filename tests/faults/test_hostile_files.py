"""Containers that do the worst to files which the agent, as root, reads, writes, mounts or removes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from tests.fakes.agent import FOR_EVER, NODE, Agent, Rows, busybox_pod
from tests.fakes.containerd import PrivateContainerd, mounts_below
from tests.faults.table import LONG, Row, sized
from tests.faults.under_attack import under_attack
from tests.faults.world import gone, ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(1800 if LONG else 300)]

EVERY_BYTE = r"""
cd /v && i=1
while [ $i -lt 256 ]; do
    name=$(printf "\\$(printf %03o $i)x")
    case $name in */*) ;; *) mkdir "n$name" 2>/dev/null; : >"n$name/f$name" ;; esac
    i=$((i + 1))
done
"""
SPECIAL = """
mkfifo /v/fifo && mknod /v/zero c 1 5 && mknod /v/disk b 7 0
ln -s / /v/root && ln -s /etc/passwd /v/link && ln -s . /v/loop
chmod 000 /v/fifo; mkdir /v/closed && touch /v/closed/inner && chmod 000 /v/closed
"""
DEEP = "cd /v && i=0; while [ $i -lt {levels} ]; do mkdir d && cd d || break; i=$((i + 1)); done"


def volume_pod(name: str, command: str, **spec: Any) -> dict[str, Any]:
    """A pod that does its worst to an emptyDir at /v and then stays."""
    manifest = busybox_pod(
        name, f"{command}\ntouch /v/.done; {FOR_EVER}", volumes=[{"name": "v", "emptyDir": {}}], **spec
    )
    manifest["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    manifest["spec"]["containers"][0]["readinessProbe"] = {
        "exec": {"command": ["test", "-e", "/v/.done"]},
        "periodSeconds": 1,
        "failureThreshold": 100,
    }
    return manifest


def pod_folder(agent: Agent, rows: Rows, name: str) -> Path:
    """The pod's directory on the node."""
    return agent.root / "pods" / str(rows[name]["uid"])


def logs_of(pod: str) -> list[str]:
    """The command line of `glasslet logs`."""
    return [sys.executable, "-c", "from glasslet.cli.app import main; main()", "logs", pod]


def rooted(agent: Agent) -> dict[str, str]:
    """The environment in which the command line finds this agent."""
    return {**os.environ, "GLASSLET_ROOT": str(agent.root)}


async def removed(agent: Agent, name: str, folder: Path) -> None:
    """Removes the pod and waits until nothing of it is on disk."""
    agent.remove(name)
    await agent.wait_for(gone(name), seconds=sized(120, 1200))
    async with asyncio.timeout(sized(60, 600)):
        while folder.exists():
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("what", "command"),
    [
        ("names of every byte", EVERY_BYTE),
        ("fifos, devices, links and closed directories", SPECIAL),
        ("a tree so deep that its path has no name", DEEP.format(levels=sized(3000, 30_000))),
        ("very many small files", f"cd /v && seq 1 {sized(20_000, 1_000_000)} | xargs touch"),
    ],
    ids=["every byte", "special files", "deep tree", "many files"],
)
async def test_a_volume_with_strange_contents_is_removed_and_nothing_else(
    containerd: PrivateContainerd, tmp_path: Path, row: Row, what: str, command: str
) -> None:
    async with under_attack(containerd, tmp_path, row) as agent:
        row.did(f"an emptyDir holds {what}, and its pod is removed")
        agent.put(volume_pod("hostile", command))
        rows = await agent.wait_for(ready("hostile"), seconds=sized(120, 1200))
        await removed(agent, "hostile", pod_folder(agent, rows, "hostile"))
        row.holds("nothing of it is left")


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder from which mounts propagate, as from `/` under systemd."""
    folder = tmp_path / "s"
    folder.mkdir()
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "--make-rshared", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


async def test_mounts_that_a_container_made_in_its_volume_never_lead_a_removal_out(
    containerd: PrivateContainerd, shared: Path, row: Row
) -> None:
    precious = shared / "precious"
    (precious / "folder").mkdir(parents=True)
    (precious / "folder" / "file").write_text("of the node")
    async with under_attack(containerd, shared, row) as agent:
        row.did("a privileged container binds a folder of the node into its volume, with Bidirectional propagation")
        manifest = volume_pod(
            "hostile", "mkdir /v/in && mount --bind /precious /v/in && mount -t tmpfs none /v/in/folder"
        )
        main = manifest["spec"]["containers"][0]
        main["securityContext"] = {"privileged": True}
        main["volumeMounts"][0]["mountPropagation"] = "Bidirectional"
        main["volumeMounts"].append({"name": "node", "mountPath": "/precious"})
        manifest["spec"]["volumes"].append({"name": "node", "hostPath": {"path": str(precious)}})
        agent.put(manifest)
        rows = await agent.wait_for(ready("hostile"))
        folder = pod_folder(agent, rows, "hostile")
        agent.remove("hostile")
        await agent.wait_for(lambda rows: "hostile" not in rows or rows["hostile"]["phase"] != "Running")
        await asyncio.sleep(sized(3, 30))
        assert (precious / "folder" / "file").read_text() == "of the node"
        row.holds("files of the node are there")
        for mount in mounts_below(folder):
            await asyncio.to_thread(subprocess.run, ["umount", mount], check=False)
        await agent.wait_for(gone("hostile"), seconds=400)
        assert (precious / "folder" / "file").read_text() == "of the node"
        assert not folder.exists()
        row.holds("removed once nothing is mounted")


async def test_sub_paths_with_every_kind_of_line_end_leave_no_mount(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    names = [
        "a\rb",
        "a\vb",
        "a\fb",
        "a\x1cb",
        "a\x1db",
        "a\x1eb",
        "a\u0085b",
        "a\u2028b",
        "a\u2029b",
        "a b",
        "a\tb",
        "a\\b",
    ]
    async with under_attack(containerd, tmp_path, row) as agent:
        row.did(f"{len(names)} subPaths with characters that end lines of text")
        manifest = volume_pod("hostile", "true")
        manifest["spec"]["containers"][0]["volumeMounts"] += [
            {"name": "v", "mountPath": f"/s{number}", "subPath": name} for number, name in enumerate(names)
        ]
        agent.put(manifest)
        rows = await agent.wait_for(ready("hostile"))
        folder = pod_folder(agent, rows, "hostile")
        row.figure("mounts", len(mounts_below(folder)))
        assert len(mounts_below(folder)) >= len(names)
        await removed(agent, "hostile", folder)
        assert mounts_below(folder) == []
        row.holds("all unmounted, nothing left")


@pytest.mark.parametrize("file", ["/etc/hosts", "/dev/termination-log"])
async def test_a_file_of_the_agent_that_a_container_blows_up_costs_no_memory(
    containerd: PrivateContainerd, tmp_path: Path, row: Row, file: str
) -> None:
    async with under_attack(containerd, tmp_path, row) as agent:
        row.did(f"a container makes {file} 64 GB long, and ends, again and again")
        agent.put(busybox_pod("hostile", f"truncate -s 64G {file}; exit 1"))
        await agent.wait_for(lambda rows: rows.get("hostile", {}).get("restarts", 0) >= 1)
        await asyncio.sleep(sized(2, 60))
        agent.remove("hostile")
        await agent.wait_for(gone("hostile"))
        row.holds("restarted and removed as any pod")


async def test_a_log_of_one_endless_line_is_read_in_bounded_memory(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    size = sized(64, 1024)
    async with under_attack(containerd, tmp_path, row, containerLogMaxSize="2Gi") as agent:
        row.did(f"a container logs one line of {size} MiB, and a client asks for its end")
        agent.put(volume_pod("hostile", f"dd if=/dev/zero bs=1M count={size} 2>/dev/null | tr '\\0' x"))
        await agent.wait_for(ready("hostile"), seconds=sized(120, 900))
        log = next(agent.logs.glob("*hostile*")) / "main" / "0.log"
        async with asyncio.timeout(60):
            # The runtime copies the last of it after the program has ended; each piece of the line has a header.
            while log.stat().st_size <= size << 20:
                await asyncio.sleep(0.1)
            await asyncio.sleep(1)
        process = await asyncio.create_subprocess_exec(*logs_of("hostile"), stdout=PIPE, stderr=PIPE, env=rooted(agent))
        assert process.stdout is not None
        received = 0
        async with asyncio.timeout(sized(60, 600)):
            while piece := await process.stdout.read(1 << 20):
                received += len(piece)
            assert await process.wait() == 0
        row.figure("MiB received", received >> 20)
        # The runtime holds the last 16 KiB back until the line ends.
        assert received >= (size << 20) - 16 * 1024
        row.holds("the whole line came")


async def test_a_log_that_a_pod_replaces_by_a_link_shows_nothing_of_the_node(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:of the node:20000::::::\n")
    async with under_attack(containerd, tmp_path, row) as agent:
        row.did("a pod that mounts the log folder replaces its log by a link to a file of the node")
        manifest = busybox_pod(
            "hostile", f"sleep 1; ln -sf {secret} /logs/default_hostile-{NODE}_*/main/0.log; {FOR_EVER}"
        )
        manifest["spec"]["volumes"] = [{"name": "logs", "hostPath": {"path": str(agent.logs)}}]
        manifest["spec"]["containers"][0]["volumeMounts"] = [{"name": "logs", "mountPath": "/logs"}]
        agent.put(manifest)
        rows = await agent.wait_for(ready("hostile"))
        log = next(agent.logs.glob(f"default_hostile-{NODE}_*")) / "main" / "0.log"
        async with asyncio.timeout(30):
            while not log.is_symlink():
                await asyncio.sleep(0.05)
        assert rows["hostile"]["ready"] == 1
        shown = await asyncio.to_thread(
            lambda: subprocess.run(logs_of("hostile"), env=rooted(agent), capture_output=True, check=False)
        )
        row.figure("answer", shown.stderr.decode().strip() or f"{len(shown.stdout)} bytes")
        assert b"of the node" not in shown.stdout + shown.stderr
        row.holds("nothing of the file is shown")
