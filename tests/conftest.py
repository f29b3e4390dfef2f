"""What all tests share: tests that need a real runtime or Go skip loudly elsewhere and fail in CI."""

from __future__ import annotations

import asyncio

from hypothesis import settings

pytest_plugins = ("tests.skips", "tests.fakes.containerd", "tests.fakes.newer_containerd", "tests.fakes.real_collector")


def pytest_configure() -> None:
    """The main thread begins without a loop, instead of one that the first asker makes and nobody ever closes. How long
    an example takes says more about the machine than about what is tested."""
    asyncio.set_event_loop(None)
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")
