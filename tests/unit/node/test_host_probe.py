"""Reading of facts that change while the node runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from glasslet.host.addresses import NodeAddressUnknown
from glasslet.node.facts import HostProbe
from tests.builders.node import settings


def probe(root: Path, **changes: object) -> HostProbe:
    return HostProbe(settings=settings(**changes), root_dir=str(root), system=str(root), resolve=lambda _: ())


def test_storage_is_the_size_of_the_root_directorys_file_system(tmp_path: Path) -> None:
    # behaviours.md §17: "ephemeral-storage (root-dir file system)"
    stat = os.statvfs(tmp_path)
    assert probe(tmp_path).storage() == stat.f_blocks * stat.f_frsize


def test_huge_pages_are_counted_in_bytes_by_page_size(tmp_path: Path) -> None:
    for name, count in (("hugepages-2048kB", "3\n"), ("hugepages-1048576kB", "0\n")):
        folder = tmp_path / "sys/kernel/mm/hugepages" / name
        folder.mkdir(parents=True)
        (folder / "nr_hugepages").write_text(count)
    assert probe(tmp_path).hugepages() == {2 * 1024**2: 6 * 1024**2, 1024**3: 0}


def test_a_kernel_without_huge_pages_has_none(tmp_path: Path) -> None:
    assert probe(tmp_path).hugepages() == {}


def test_a_given_address_must_be_on_this_machine(tmp_path: Path) -> None:
    # behaviours.md §12: "--node-ip must be on an interface"
    with pytest.raises(NodeAddressUnknown, match="not found in the host's network interfaces"):
        probe(tmp_path, node_ips=("192.0.2.1",)).addresses()
