"""Volumes that a controller must not detach: what the node tells as `volumesInUse`."""

from __future__ import annotations

import os

from glasslet.host.files.layout import RootLayout

_ATTACHED_BY_CONTROLLERS = "kubernetes.io/csi"


def volumes_in_use(root: RootLayout) -> tuple[str, ...] | None:
    """None of the types that are mounted here is attached by a controller, so there is nothing to tell. But where
    another kubelet left volumes of CSI drivers, what it told is to stay: None says that it is not known."""
    try:
        with os.scandir(f"{root.root_dir}/plugins/{_ATTACHED_BY_CONTROLLERS}") as entries:
            return None if any(entries) else ()
    except OSError:
        return ()
