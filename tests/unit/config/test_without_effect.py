"""Settings that are accepted and do nothing are notices, and the tables of them are true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import fields
from tests.unit.config.files import STANDALONE, write

import glasslet
from glasslet.config import kubelet_configuration
from glasslet.config.check import check
from glasslet.config.gate_table import GATES
from glasslet.config.options import Options
from glasslet.config.without_effect import FIELDS, KUBELET_GATES, OPTIONS

SOURCES = Path(glasslet.__file__).parent
ACT_IN_CONFIG = {
    "mergeDefaultEvictionSettings", "failSwapOn", "failCgroupV1", "protectKernelDefaults", "runOnce", "config",
    "config_dir", "featureGates",
}  # fmt: skip
"""Act while the configuration is loaded or checked: other values change defaults, or end the start."""
READ_WITHOUT_EFFECT = {
    "cpuManagerPolicy", "memoryManagerPolicy", "evictionHard", "volumePluginDir", "numaNode", "samplingRatePerMillion",
    "splitStream", "infoBufferSize", "shutdownGracePeriodSeconds", "logging", "tracing", "reservedMemory",
}  # fmt: skip
"""Parts of an entry, or read for something else than what they ask for."""


def notices(tmp_path: Path, text: str, *flags: str) -> list[tuple[str, str]]:
    path = write(tmp_path / "kubelet.yaml", STANDALONE + text)
    return [(one.field, one.message) for one in check([f"--config={path}", *flags]).warnings]


def test_a_value_that_asks_for_something_in_vain_is_a_notice_with_its_reason(tmp_path: Path) -> None:
    found = notices(tmp_path, "showHiddenMetricsForVersion: '1.33'\nvolumePluginDir: /plugins\n")
    assert [name for name, _ in found] == ["showHiddenMetricsForVersion", "volumePluginDir"]
    assert all(text.startswith(f"{name} has no effect: ") for name, text in found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        # As kubeadm writes them: zero is the default.
        (
            "shutdownGracePeriod: 0s\nshutdownGracePeriodCriticalPods: 0s\nstreamingConnectionIdleTimeout: 0s\n"
            "cpuManagerReconcilePeriod: 0s\nevictionPressureTransitionPeriod: 0s\n"
            'logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}}, verbosity: 0}\n'
        ),
        # As kind writes them: nothing is to be evicted.
        "evictionHard: {imagefs.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%}\n",
        "topologyManagerScope: container\n",
    ],
)
def test_a_value_that_asks_for_nothing_is_none(tmp_path: Path, text: str) -> None:
    assert notices(tmp_path, text) == []


def test_flags_and_gates_are_notices_too(tmp_path: Path) -> None:
    found = notices(
        tmp_path, "featureGates: {EventedPLEG: true, CSIVolumeHealth: false}\n", "--housekeeping-interval=3s"
    )
    assert [field for field, _ in found] == ["--housekeeping-interval", "featureGates.EventedPLEG"]


def test_a_notice_names_where_the_value_comes_from(tmp_path: Path) -> None:
    path = write(tmp_path / "kubelet.yaml", STANDALONE)
    (notice,) = check([f"--config={path}", "--hairpin-mode=none"]).warnings[-1:]
    assert (notice.field, notice.origin) == ("hairpinMode", "flag --hairpin-mode")


def test_each_setting_that_the_code_does_not_read_is_in_the_table() -> None:
    read = set(attributes())
    unread = {wire for name, wire in names() if name not in read}
    entries = {part for path in FIELDS for part in path.split(".")} | {flag[2:].replace("-", "_") for flag in OPTIONS}
    assert unread - entries - ACT_IN_CONFIG - READ_WITHOUT_EFFECT - {"reported_version"} == set()


def test_no_setting_of_the_table_is_acted_upon() -> None:
    read = set(attributes())
    acting = {wire for name, wire in names() if name in read}
    entries = {path.rpartition(".")[2] for path in FIELDS} | {flag[2:].replace("-", "_") for flag in OPTIONS}
    assert entries & acting - READ_WITHOUT_EFFECT - {"version"} == set()


def test_gates_of_the_table_are_known_and_not_acted_upon() -> None:
    assert set(KUBELET_GATES) <= set(GATES)
    assert not any(GATES[name].locked for name in KUBELET_GATES)
    assert set(KUBELET_GATES) & set(texts()) == set()


def names() -> Iterator[tuple[str, str]]:
    """Attribute and wire name of every setting."""
    modules = (kubelet_configuration.__name__, Options.__module__)
    for kind in (*vars(kubelet_configuration).values(), Options):
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ in modules:
            yield from ((one.name, one.encode_name) for one in fields(kind))


@cache
def code() -> str:
    """The code that may act: not what loads, checks and lists settings."""
    paths = [(path, path.relative_to(SOURCES).parts) for path in SOURCES.rglob("*.py")]
    return "\n".join(path.read_text() for path, parts in paths if "_generated" not in parts and parts[0] != "config")


def attributes() -> list[str]:
    return re.findall(r"\.([a-z][a-z0-9_]*)", code())


def texts() -> list[str]:
    return re.findall(r'"([A-Z][A-Za-z0-9]*)"', code())


def test_hard_thresholds_that_replace_the_defaults_say_which_are_gone(tmp_path: Path) -> None:
    (found,) = notices(
        tmp_path, "evictionHard: {memory.available: 500Mi, nodefs.available: 10%, nodefs.inodesFree: 5%}\n"
    )
    text = (
        "evictionHard replaces all hard thresholds, so imagefs.available, imagefs.inodesFree have none: "
        'mergeDefaultEvictionSettings: true adds the defaults, "0%" says that it is meant'
    )
    assert found == ("evictionHard", text)


@pytest.mark.parametrize(
    "text",
    [
        "evictionHard: {memory.available: 500Mi}\nmergeDefaultEvictionSettings: true\n",
        "evictionHard: {}\n",
        (
            "evictionHard: {memory.available: 500Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, "
            "imagefs.available: 0%, imagefs.inodesFree: 0%}\n"
        ),
    ],
)
def test_hard_thresholds_that_leave_nothing_out_by_oversight_are_no_notice(tmp_path: Path, text: str) -> None:
    assert notices(tmp_path, text) == []
