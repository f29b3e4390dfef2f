"""The namespaces that a conformance run lives in: what is seen inside, and that nothing is left outside."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.isolation import CGROUPS, PLACES, Host, hierarchies
from tests.fakes.cgroups import real_tree

LOOK = """
import json, os, pathlib, subprocess, sys
from tests.conformance.isolation import PLACES, furnish, in_cgroup
folder = pathlib.Path(sys.argv[1])
furnish(folder / "places", (folder, pathlib.Path.cwd(), pathlib.Path(sys.prefix), pathlib.Path(sys.base_prefix)))
with in_cgroup("kubelet"):
    kubelet = pathlib.Path("/proc/self/cgroup").read_text()
orphan = subprocess.Popen(["sh", "-c", "exec sleep 1000"], start_new_session=True)
pathlib.Path("/tmp/of-the-node").touch()
pathlib.Path("/var/lib/kubelet/of-the-node").touch()
seen = {
    "interfaces": sorted(os.listdir("/sys/class/net")),
    "groups": pathlib.Path("/proc/self/cgroup").read_text(),
    "kubelet_groups": kubelet,
    "places": {place: os.listdir(place) for place in PLACES},
    "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    "tmp_mode": oct(os.stat("/tmp").st_mode & 0o7777),
}
(folder / "seen.json").write_text(json.dumps(seen))
sys.exit(7)
"""


@pytest.fixture
def seen(tmp_path: Path) -> dict[str, Any]:
    """What a program saw inside, from a run that is over."""
    real_tree()  # or skip
    with Host() as host:
        code = host.run((sys.executable, "-c", LOOK, str(tmp_path)))
    found: dict[str, Any] = json.loads((tmp_path / "seen.json").read_text())
    return {**found, "code": code}


def test_a_node_is_alone_in_its_namespaces_and_leaves_nothing(seen: dict[str, Any]) -> None:
    assert seen["code"] == 7
    assert seen["interfaces"] == ["eth0", "lo", "peer0"]
    assert seen["places"] == {**{place: [] for place in PLACES}, "/var/lib/kubelet": ["of-the-node"]}
    assert seen["processes"][:2] == [1, 2]
    assert len(seen["processes"]) < 10
    assert seen["tmp_mode"] == "0o1777"
    assert _controllers(seen["groups"], "/system") >= {"memory", "cpu"}
    assert _controllers(seen["kubelet_groups"], "/kubelet") >= {"memory", "cpu"}
    own = f"glasslet-conformance-{os.getpid()}"
    trees = hierarchies(Path("/proc/self/mounts").read_text())
    assert [tree.place for tree in trees if (CGROUPS / tree.place / own).exists()] == []
    assert not Path("/tmp/of-the-node").exists()
    assert not Path("/var/lib/kubelet/of-the-node").exists()


def _controllers(text: str, group: str) -> set[str]:
    """Those that have the process in that group; on the unified hierarchy all have."""
    found: set[str] = set()
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        if path == group:
            found |= set(names.split(",")) if names else {"memory", "cpu"}
    return found
