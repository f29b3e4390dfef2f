"""What stands between a pod and its volumes."""

from __future__ import annotations


class VolumeNotReady(Exception):
    """Some volume of a pod could not be mounted, or unmounted, this time: try again later. `message` is upstream's text
    (events FailedMount); it names volumes and paths, never contents."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
