"""How the runtime's socket is dialled."""

from __future__ import annotations

from glasslet.runtime.cri.connection import CHANNEL_OPTIONS


def test_a_lost_runtime_is_dialled_with_upstreams_pauses() -> None:
    # behaviours.md §30: "dial back-off 100 ms..3 s, connect time at least 5 s; authority localhost"
    options = dict(CHANNEL_OPTIONS)
    names = ("initial_reconnect_backoff_ms", "max_reconnect_backoff_ms", "min_reconnect_backoff_ms")
    assert [options[f"grpc.{name}"] for name in names] == [100, 3_000, 5_000]
    assert options["grpc.default_authority"] == "localhost"
