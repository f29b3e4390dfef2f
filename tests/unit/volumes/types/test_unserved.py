"""Every type of volumes that is not mounted here says why."""

from __future__ import annotations

import pytest

from glasslet.api.codec import convert
from glasslet.api.volume import Volume
from glasslet.volumes.csi.migration import DRIVERS
from glasslet.volumes.plugin import VolumeRequest
from glasslet.volumes.types.unserved import unserved
from tests.builders.podspec import pod_of

REMOVED = ("cephfs", "flocker", "glusterfs", "photonPersistentDisk", "quobyte", "rbd", "scaleIO", "storageos")


def said_of(kind: str, source: dict[str, str] | None = None) -> tuple[str, str]:
    """The failed step and its text."""
    volume = convert({"name": "v", kind: source or {}}, Volume)
    problem = unserved(kind, VolumeRequest(pod=pod_of(), volume=volume), ("emptyDir", "hostPath"))
    return problem.step, str(problem)


@pytest.mark.parametrize("kind", DRIVERS)
def test_a_type_that_moved_to_csi_names_its_driver(kind: str) -> None:
    step, text = said_of(kind)
    assert step == "MountDevice"
    assert f"driver name {DRIVERS[kind]} not found in the list of registered CSI drivers" in text


@pytest.mark.parametrize("kind", REMOVED)
def test_a_type_that_was_removed_says_so(kind: str) -> None:
    expected = ("FindPluginBySpec", f"no volume plugin matched ({kind} was removed from Kubernetes)")
    assert said_of(kind) == expected


def test_a_type_whose_gate_is_off_names_it() -> None:
    assert "image needs the feature gate ImageVolume, which is off" in said_of("image")[1]


def test_a_type_that_no_gate_brings_does_not_call_its_gate_off() -> None:
    assert said_of("gitRepo")[1] == (
        "no volume plugin matched (gitRepo is not served here, whatever the feature gate GitRepoVolumeDriver says)"
    )


@pytest.mark.parametrize("kind", ["iscsi", "fc", "flexVolume"])
def test_a_type_that_is_not_served_is_named_with_those_that_are(kind: str) -> None:
    text = f"no volume plugin matched ({kind} is not served here; served: emptyDir, hostPath)"
    assert said_of(kind) == ("FindPluginBySpec", text)


def test_an_inline_volume_of_a_driver_that_is_not_there_names_it() -> None:
    step, text = said_of("csi", {"driver": "disk.example.org"})
    assert step == "SetUp"
    assert text.endswith("driver name disk.example.org not found in the list of registered CSI drivers")
