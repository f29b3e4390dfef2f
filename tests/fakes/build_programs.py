"""Builds the programs that tests run, where they are not there yet: `python -m tests.fakes.build_programs`.

Tests do it themselves, too. Beforehand it takes nothing from the time that a test is given.
"""

from __future__ import annotations

from tests.fakes import control_plane, go_eviction, newer_containerd, real_collector

if __name__ == "__main__":
    if control_plane.missing_requirement() is None:
        control_plane.build()
    if newer_containerd.missing_newer_requirement() is None:
        newer_containerd.build()
    if real_collector.missing_collector_requirement() is None:
        real_collector.build()
    if go_eviction.missing_eviction_requirement() is None:
        go_eviction.build()
