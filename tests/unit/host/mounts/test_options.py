from __future__ import annotations

import os

import pytest

from glasslet.host.mounts.options import bind_flags, joined
from glasslet.host.mounts.program import mount_arguments

RO, NOSUID, NOEXEC, RELATIME = 1, 2, 8, 1 << 21


@pytest.mark.parametrize(
    ("options", "now", "flags"),
    [
        (["ro"], 0, RO),
        (["ro", "noexec"], os.ST_NOSUID, RO | NOSUID | NOEXEC),
        (["rw"], os.ST_RDONLY | os.ST_NOSUID, NOSUID),
        (["suid"], os.ST_NOSUID | os.ST_RELATIME, RELATIME),
        ([], os.ST_NOSUID, None),
        (["size=1", "discard"], 0, None),
    ],
)
def test_a_bind_mount_keeps_what_is_not_asked_to_change(options: list[str], now: int, flags: int | None) -> None:
    assert bind_flags(options, now) == flags


def test_options_of_several_sources_are_each_given_once_and_sorted() -> None:
    assert joined(("ro", "nfsvers=4"), ("ro", "")) == ("nfsvers=4", "ro")


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ((), ("-t", "nfs", "10.0.0.1:/export", "/target")),
        (("nfsvers=4", "ro"), ("-t", "nfs", "-o", "nfsvers=4,ro", "10.0.0.1:/export", "/target")),
    ],
)
def test_the_program_gets_type_options_source_and_target(options: tuple[str, ...], arguments: tuple[str, ...]) -> None:
    assert mount_arguments("10.0.0.1:/export", "/target", "nfs", options) == arguments
