"""The man pages are made from what the commands say of themselves."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from glasslet.cli.app import COMMANDS
from glasslet.cli.cluster.app import CLUSTER_COMMANDS
from glasslet.config.flags.table import GROUPS, WINDOWS_ONLY

SCRIPT = Path(__file__).parents[3] / "scripts" / "man_pages.py"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("glasslet_man_pages", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES: dict[str, str] = dict(load_script().pages())


def test_every_command_has_a_page() -> None:
    wanted = {f"glasslet-{name}.1" for name in COMMANDS} | {f"kubectl-glass-{name}.1" for name in CLUSTER_COMMANDS}
    assert wanted | {"glasslet.1", "kubectl-glass.1", "kubelet.8"} == PAGES.keys()


def test_the_page_of_a_command_has_its_options_with_their_meaning() -> None:
    assert ".B \\-w, \\-\\-watch\nKeep updating until Ctrl\\-C" in PAGES["glasslet-ps.1"]


def test_the_page_of_the_kubelet_has_every_flag() -> None:
    flags = [flag.name for group in GROUPS.values() for flag in group if flag.name not in WINDOWS_ONLY]
    page = PAGES["kubelet.8"]
    assert [name for name in flags if f".B \\-\\-{name.replace('-', chr(92) + '-')} " not in page] == []


def test_man_shows_every_page_without_a_warning(tmp_path: Path) -> None:
    program = shutil.which("groff")
    if program is None:
        pytest.skip("groff is missing on this machine")
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [program, "-man", "-Tutf8", "-Kutf8", "-ww", "-z", *(str(path) for path in sorted(tmp_path.iterdir()))],
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
