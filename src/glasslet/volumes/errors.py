"""The error of pods whose volumes are not ready."""

from __future__ import annotations


class VolumeNotReady(Exception):
    """Some volume of a pod could not be mounted, or unmounted, this time: try again later. `message` is upstream's text
    (events FailedMount); it names volumes and paths, never contents. `problems`: the same for each volume apart."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.message = "; ".join(problems)
        self.problems = problems
