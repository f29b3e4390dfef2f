"""The text of `glasslet volumes`."""

from __future__ import annotations

from msgspec.structs import replace

from glasslet.answers.volumes import DriverRow, StagedRow, VolumeRow, VolumesAnswer
from glasslet.cli.volumes_command import volumes_text

ROW = VolumeRow(pod="default/db", uid="u", volume="pv1", plugin="kubernetes.io/csi", path="/p")


def test_a_volume_has_pod_driver_mount_and_size() -> None:
    row = VolumeRow(
        pod="default/db",
        uid="u",
        volume="pv1",
        plugin="kubernetes.io/csi",
        path="/p",
        mounted="ext4",
        driver="d.example",
        handle="h1",
        published=True,
        capacity=1 << 30,
        used=1 << 20,
    )
    line = volumes_text(VolumesAnswer(volumes=(row,))).splitlines()[1]
    assert line.split() == ["default/db", "pv1", "d.example", "ext4", "1", "MiB", "1", "GiB", "h1"]


def test_a_volume_whose_mount_is_missing_says_so() -> None:
    row = VolumeRow(pod="", uid="u", volume="v", plugin="kubernetes.io/csi", path="/p", driver="d", published=True)
    assert volumes_text(VolumesAnswer(volumes=(row,))).splitlines()[1].split()[:4] == ["u", "v", "d", "no"]


def test_what_is_staged_has_its_pods_and_drivers_their_sockets() -> None:
    text = volumes_text(
        VolumesAnswer(
            volumes=(ROW,),
            staged=(StagedRow(driver="d", handle="h", path="/s", mounted="xfs", users=("default/db",)),),
            drivers=(DriverRow(name="d", endpoint="/d.sock", version="1.0.0"),),
        )
    )
    assert "STAGED BY" in text
    assert text.splitlines()[-1].split() == ["d", "1.0.0", "/d.sock"]


def test_volumes_of_several_nodes_have_their_nodes_first() -> None:
    answer = VolumesAnswer(
        volumes=(replace(ROW, node="node-a"),),
        drivers=(DriverRow(name="d", endpoint="/d.sock", version="1.0.0", node="node-b"),),
        problem="node-c: the disk does not answer",
    )
    lines = volumes_text(answer).splitlines()
    assert lines[0].split()[:2] == ["NODE", "POD"]
    assert lines[1].split()[:2] == ["node-a", "default/db"]
    assert lines[-3].split()[0] == "node-b"
    assert lines[-1] == "node-c: the disk does not answer"
