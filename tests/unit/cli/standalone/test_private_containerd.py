"""The configuration of the private containerd."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from glasslet.cli.failure import Failure
from glasslet.cli.standalone import private_containerd
from glasslet.cli.standalone.private_containerd import containerd_config, find_tools, free_subnet, network
from glasslet.cli.standalone.state_dir import StateDir


def config(**fields: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "root": Path("/state/containerd/root"),
        "run": Path("/run/glasslet/1"),
        "cni": ("/opt/cni/bin", "/state/containerd/cni"),
        "sandbox_image": "registry.k8s.io/pause:3.10",
        "snapshotter": "overlayfs",
        "restrict_oom": True,
    }
    return tomllib.loads(containerd_config(**{**defaults, **fields}))


def test_everything_of_it_lies_apart_from_other_containerds() -> None:
    made = config()
    assert made["root"] == "/state/containerd/root"
    assert made["state"].startswith("/run/glasslet/1/")
    assert made["grpc"]["address"].startswith("/run/glasslet/1/")
    assert made["plugins"]["io.containerd.grpc.v1.cri"]["cni"]["conf_dir"] == "/state/containerd/cni"


@pytest.mark.parametrize("restrict", [True, False])
def test_oom_scores_are_restricted_where_the_capability_is_missing(restrict: bool) -> None:
    cri = config(restrict_oom=restrict)["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["restrict_oom_score_adj"] is restrict


def test_awkward_paths_survive_the_configuration() -> None:
    assert config(root=Path('/st"ate/ü\\x'))["root"] == '/st"ate/ü\\x'


def test_streams_are_served_on_this_machine_only() -> None:
    assert config()["plugins"]["io.containerd.grpc.v1.cri"]["stream_server_address"] == "127.0.0.1"


def test_host_ports_and_masquerading_need_iptables() -> None:
    def plugins(masquerade: bool) -> list[str]:
        made: Any = network("gl1", "10.201.0.0/24", masquerade)["plugins"]
        return [plugin["type"] for plugin in made]

    assert plugins(masquerade=True) == ["bridge", "portmap"]
    assert plugins(masquerade=False) == ["bridge"]


def test_a_subnet_that_is_routed_already_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_containerd, "_routed_networks", list)
    first = free_subnet("key")
    address = int.from_bytes(bytes(int(part) for part in first.split("/")[0].split(".")))
    monkeypatch.setattr(private_containerd, "_routed_networks", lambda: [(address, 0xFFFFFF00)])
    assert free_subnet("key") != first


def test_two_states_share_no_names(tmp_path: Path) -> None:
    one, other = StateDir(tmp_path / "a"), StateDir(tmp_path / "b")
    assert one.key != other.key
    assert len(f"gl{one.key}") <= 15


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    monkeypatch.setattr(private_containerd, "_CNI_FOLDERS", ())
    with pytest.raises(Failure, match="apt-get install containerd runc containernetworking-plugins"):
        find_tools()
