"""Every state file damaged in every way: the agent starts, says so once for each, and touches no container."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from glasslet.host.files.small_files import write_checked
from tests.fakes.agent import Agent, agent_on, busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.faults.table import Row
from tests.faults.world import healthz, ready, restarts, started

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]


def state_files(agent: Agent) -> dict[str, Path]:
    """All that the agent reads when it starts, by the part of its path that a finding names."""
    return {
        "glasslet/probes": agent.root / "glasslet" / "probes",
        "kubelet_internal_checkpoint": agent.device_plugins / "kubelet_internal_checkpoint",
        "allocated_pods_state": agent.root / "allocated_pods_state",
        "actuated_pods_state": agent.root / "actuated_pods_state",
        "pki/kubelet.crt": agent.root / "pki" / "kubelet.crt",
    }


def write_plausible(path: Path) -> None:
    """A file of the right form where the agent had no reason to write one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"data": '{"entries":{}}', "checksum": 12}))


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def noise(path: Path) -> None:
    path.write_bytes(random.Random(path.name).randbytes(4096))


def another_version(path: Path) -> None:
    """In the form of ours, of some year to come; no other file knows that form."""
    write_checked(str(path), json.dumps({"version": 99, "Data": {"entries": []}}).encode())


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "with").write_text("content")


DAMAGES: tuple[Callable[[Path], None], ...] = (cut, emptied, noise, another_version, directory)


async def test_damaged_state_files_cost_a_finding_each(containerd: PrivateContainerd, tmp_path: Path, row: Row) -> None:
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready()
        pod = busybox_pod("steady")
        pod["spec"]["containers"][0]["readinessProbe"] = {
            "exec": {"command": ["true"]},
            "periodSeconds": 1,
            "timeoutSeconds": 60,
        }
        agent.put(pod)
        await agent.wait_for(ready("steady"))
        before = await started(containerd, "steady")
        files = state_files(agent)
        ways = ", ".join(damage.__name__.replace("_", " ") for damage in DAMAGES)
        row.did(f"{len(files)} state files and the record: {ways}")
        for damage in DAMAGES:
            assert agent.terminate() == 0
            damage_all(agent, damage)
            agent.start()
            await agent.wait_until_ready()
            rows = await agent.wait_for(ready("steady"))
            assert restarts(rows, "steady") == {}
            assert await started(containerd, "steady") == before
            await agent.wait_for(lambda _: all(findings(agent, name) for name in files))
            for name in files:
                assert len(findings(agent, name)) == 1, (damage, findings(agent))
            assert healthz(agent) == 200
            assert "Traceback" not in agent.log.read_text(errors="replace"), damage
        row.holds("agent starts", "no restart", "one finding for each", "healthz ok", "no traceback")
        # What was there is kept for a person to look at, and newly written state is good.
        for path in files.values():
            assert list(path.parent.glob(f"{path.name}.damaged*")), path
        assert agent.terminate() == 0
        agent.log.write_bytes(b"")
        agent.start()
        await agent.wait_until_ready()
        await agent.wait_for(ready("steady"))
        again = [line for line in findings(agent) if "records" not in line]
        assert [line for line in again if any(name in line for name in files)] == []
        assert await started(containerd, "steady") == before
        row.holds("nothing more is said at the next start")


def findings(agent: Agent, words: str = "") -> list[str]:
    """Those with these words in the log."""
    return [
        line for line in agent.log.read_text(errors="replace").splitlines() if '"finding"' in line and words in line
    ]


def damage_all(agent: Agent, damage: Callable[[Path], None]) -> None:
    """State files and the record; the log begins anew."""
    for path in state_files(agent).values():
        if not path.exists():
            write_plausible(path)
        damage(path)
    records = [path for path in sorted((agent.root / "glasslet" / "records").iterdir()) if path.is_file()]
    assert len(records) > 1
    for path in records:
        damage(path)
    agent.log.write_bytes(b"")
