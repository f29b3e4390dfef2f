"""Kernel settings of a node."""

from __future__ import annotations

from pathlib import Path

from glasslet.config.machine import KERNEL_SETTINGS
from glasslet.host.kernel_settings import set_kernel_settings


def proc_sys(folder: Path, **changed: str) -> Path:
    for name, value in KERNEL_SETTINGS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changed.get(path.name, f"{value}\n"))
    return folder


def test_what_differs_is_written(tmp_path: Path) -> None:
    # behaviours.md §31: "Kernel defaults set or (protectKernelDefaults) required: vm.overcommit_memory=1,
    # vm.panic_on_oom=0, kernel.panic=10, kernel.panic_on_oops=1"
    root = proc_sys(tmp_path, overcommit_memory="0\n", panic="0\n")
    assert list(set_kernel_settings(root=str(root))) == []
    assert ((root / "vm/overcommit_memory").read_text(), (root / "kernel/panic").read_text()) == ("1", "10")


def test_what_fits_is_left_alone(tmp_path: Path) -> None:
    root = proc_sys(tmp_path)
    assert list(set_kernel_settings(root=str(root))) == []
    assert (root / "kernel/panic").read_text() == "10\n"


def test_what_cannot_be_set_is_named_and_the_others_are_set(tmp_path: Path) -> None:
    root = proc_sys(tmp_path, panic="0\n")
    (root / "vm/overcommit_memory").unlink()
    problems = list(set_kernel_settings(root=str(root)))
    assert problems == ["kernel setting vm.overcommit_memory is not 1: No such file or directory"]
    assert (root / "kernel/panic").read_text() == "10"
