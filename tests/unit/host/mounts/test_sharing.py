"""Which mounts are shared, by the kernel's table."""

from __future__ import annotations

import pytest

from glasslet.host.mounts.table import MountTable

TABLE = r"""21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /var/lib rw - tmpfs tmpfs rw
23 22 0:21 / /var/lib/kubelet rw shared:7 master:2 - tmpfs tmpfs rw
24 21 0:22 / /mnt/a\040b rw shared:9 - tmpfs tmpfs rw
25 21 0:23 / /mnt/twice rw shared:9 - tmpfs tmpfs rw
26 21 0:24 / /mnt/twice rw master:9 - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("folder", "shared"),
    [
        ("/etc/kubelet", True),
        ("/", True),
        ("/var/lib/other", False),
        ("/var/library", True),
        ("/var/lib/kubelet", True),
        ("/var/lib/kubelet/pods", True),
        ("/mnt/a b/c", True),
        ("/mnt/twice", False),
    ],
)
def test_the_deepest_and_last_mount_of_a_folder_counts(folder: str, shared: bool) -> None:
    holder = MountTable(TABLE.encode()).holder(folder)
    assert holder is not None
    assert holder.shared is shared


def test_a_table_without_mounts_holds_no_folder() -> None:
    assert MountTable(b"").holder("/x") is None
