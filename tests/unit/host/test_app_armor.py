"""When a kernel is taken to enforce AppArmor profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.host.machine import app_armor_enabled


def machine(root: Path, *, mounted: bool, enabled: str | None) -> str:
    if mounted:
        (root / "sys/kernel/security/apparmor").mkdir(parents=True)
    if enabled is not None:
        parameters = root / "sys/module/apparmor/parameters"
        parameters.mkdir(parents=True)
        (parameters / "enabled").write_text(enabled)
    return str(root)


@pytest.mark.parametrize(
    ("mounted", "enabled", "answer"),
    [(True, "Y\n", True), (True, "N\n", False), (True, None, False), (False, "Y\n", False), (True, "\xff", False)],
)
def test_module_must_be_on_and_its_interface_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounted: bool, enabled: str | None, answer: bool
) -> None:
    monkeypatch.delenv("container", raising=False)
    assert app_armor_enabled(machine(tmp_path, mounted=mounted, enabled=enabled)) is answer


def test_container_of_a_manager_has_none_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("container", "systemd-nspawn")
    assert not app_armor_enabled(machine(tmp_path, mounted=True, enabled="Y\n"))
