"""What the packages are made of; `scripts/test-deb` installs one."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = [*(ROOT / "contrib" / "debian" / name for name in ("postinst", "prerm", "postrm"))]
DROP_IN = (ROOT / "contrib" / "kubeadm" / "20-glasslet.conf").read_text()


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("glasslet_sbom", ROOT / "scripts" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sbom = load_script()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_maintainer_script_is_one_that_sh_reads(script: Path) -> None:
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
    assert script.read_text().startswith("#!/bin/sh\n")


@pytest.mark.parametrize("name", ["build-deb", "test-deb", "test-machine"])
def test_a_long_script_is_one_that_bash_reads(name: str) -> None:
    assert subprocess.run(["bash", "-n", ROOT / "scripts" / name], check=False).returncode == 0


def test_the_drop_in_replaces_the_command_and_keeps_kubeadms_variables() -> None:
    lines = [line for line in DROP_IN.splitlines() if line.startswith("ExecStart=")]
    assert lines[0] == "ExecStart="
    assert lines[1].split()[0] == "ExecStart=/opt/glasslet/bin/kubelet"
    assert re.findall(r"\$(\w+)", lines[1]) == [
        "KUBELET_KUBECONFIG_ARGS",
        "KUBELET_CONFIG_ARGS",
        "KUBELET_KUBEADM_ARGS",
        "KUBELET_EXTRA_ARGS",
    ]


def test_the_drop_in_protects_pods_as_the_unit_does() -> None:
    unit = set((ROOT / "contrib" / "kubelet.service").read_text().splitlines())
    settings = {line for line in DROP_IN.splitlines() if "=" in line and not line.startswith(("#", "ExecStart"))}
    assert settings
    assert settings - unit == set()


def test_the_list_of_parts_has_each_dependency_with_its_version() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        wanted = {
            sbom.canonical(re.split(r"[<>=\s;]", need)[0]) for need in tomllib.load(file)["project"]["dependencies"]
        }
    made = json.loads(json.dumps(sbom.document(distributions())))
    assert made["metadata"]["component"]["name"] == "glasslet"
    named = {part["name"]: part["version"] for part in made["components"]}
    assert wanted - named.keys() == set()
    assert all(named.values())
    own = next(row for row in made["dependencies"] if row["ref"].startswith("pkg:pypi/glasslet@"))
    assert f"pkg:pypi/aiohttp@{named['aiohttp']}" in own["dependsOn"]


def test_every_dependency_is_pinned() -> None:
    pinned = {
        sbom.canonical(line.split("==")[0])
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    with (ROOT / "pyproject.toml").open("rb") as file:
        wanted = {
            sbom.canonical(re.split(r"[<>=\s;]", need)[0]) for need in tomllib.load(file)["project"]["dependencies"]
        }
    assert wanted - pinned == set()


def test_the_list_is_the_same_for_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    assert sbom.document(distributions())["metadata"]["timestamp"] == "2026-01-01T00:00:00Z"
