"""The systemd unit in contrib: what a daemon that mounts for pods and manages cgroups may be restricted to."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "contrib" / "kubelet.service"
OWN_MOUNT_NAMESPACE = {
    "PrivateDevices", "PrivateMounts", "PrivateTmp", "ProtectControlGroups", "ProtectHome", "ProtectKernelLogs",
    "ProtectKernelModules", "ProtectKernelTunables", "ProtectProc", "ProtectSystem", "ReadOnlyPaths", "ReadWritePaths",
    "InaccessiblePaths", "TemporaryFileSystem", "BindPaths", "RootDirectory", "DynamicUser", "MountFlags",
}  # fmt: skip
"""Settings that give the service a mount namespace of its own (systemd.exec(5))."""


def lines() -> list[str]:
    return UNIT.read_text().split("\n")


def settings() -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines() if "=" in line and not line.startswith("#"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("UMask", "0077"),
        ("LimitCORE", "0"),
        ("OOMScoreAdjust", "-999"),
        ("Nice", "-5"),
        ("CPUSchedulingPolicy", "other"),
        ("KillMode", "process"),
        ("Delegate", "yes"),
        ("Type", "notify"),
        ("Restart", "always"),
    ],
)
def test_a_setting_that_protects_the_node_stands_in_the_unit(name: str, value: str) -> None:
    assert settings().get(name) == value


def test_the_agents_mounts_are_those_of_the_machine() -> None:
    assert not OWN_MOUNT_NAMESPACE & settings().keys()


def test_volumes_can_get_the_set_group_id_bit_and_helpers_the_agents_rights() -> None:
    assert not {"RestrictSUIDSGID", "NoNewPrivileges", "CapabilityBoundingSet", "User"} & settings().keys()


def test_each_group_of_settings_of_the_service_says_why() -> None:
    service = "\n".join(lines()).split("[Service]\n")[1].split("[Install]")[0]
    groups = [group.split("\n") for group in service.strip().split("\n\n")[1:]]
    assert groups
    assert [group[0] for group in groups if not group[0].startswith("#")] == []


def analyzed(folder: Path, *command: str) -> tuple[int, str]:
    """The exit code and output of systemd-analyze about the unit, with a program that exists."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is missing on this machine")
    copy = folder / UNIT.name
    copy.write_text(UNIT.read_text().replace("/usr/bin/kubelet", sys.executable))
    done = subprocess.run([program, *command, str(copy)], capture_output=True, check=False, text=True)
    return done.returncode, done.stdout + done.stderr


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    assert analyzed(tmp_path, "verify") == (0, "")


def test_the_exposure_of_the_unit_is_the_one_in_the_documentation_and_does_not_grow(tmp_path: Path) -> None:
    _, text = analyzed(tmp_path, "security", "--offline=true", "--no-pager")
    overall = re.search(r"Overall exposure level for .*: ([0-9.]+)", text)
    assert overall is not None, text
    assert float(overall[1]) <= 9.5
    page = (UNIT.parents[1] / "docs" / "howto" / "systemd.md").read_text()
    assert "9.5 of 10" in page
