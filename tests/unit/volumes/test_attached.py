from __future__ import annotations

from pathlib import Path

from glasslet.host.files.layout import RootLayout
from glasslet.volumes.attached import volumes_in_use


def test_nothing_is_in_use_where_no_driver_attached_anything(tmp_path: Path) -> None:
    assert volumes_in_use(RootLayout(str(tmp_path))) == ()
    (tmp_path / "plugins/kubernetes.io/csi").mkdir(parents=True)
    assert volumes_in_use(RootLayout(str(tmp_path))) == ()


def test_what_another_kubelet_told_stays_while_volumes_of_drivers_are_left(tmp_path: Path) -> None:
    # behaviours.md §22: "detach by the controller when not in volumesInUse"
    (tmp_path / "plugins/kubernetes.io/csi/disk.example.org").mkdir(parents=True)
    assert volumes_in_use(RootLayout(str(tmp_path))) is None
