"""Loads the agent's thousand modules, which is most of the CPU that a start takes."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glasslet.calls.start import StartWatch
    from glasslet.config.loading import Loaded
    from glasslet.server.transport.serving_certificate import ServingPair


def load_agent() -> Callable[[Loaded, ServingPair, StartWatch], int]:
    """Returns `daemon.run`. The loaded modules are frozen for the garbage collector: they live as long as the process,
    and each full collection would walk through all of them."""
    with _without_collector():
        with _without_authorities():
            import aiohttp  # noqa: F401
        from glasslet.daemon import run
    return run


@contextmanager
def _without_collector() -> Iterator[None]:
    """Modules make half a million objects and next to no garbage; looking for it takes a sixth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _without_authorities() -> Iterator[None]:
    """When aiohttp is imported it makes two TLS contexts and reads the machine's certificate authorities for each.

    The agent does not use them: a client that trusts those authorities makes its own context. So OpenSSL finds none
    here."""
    before = {name: os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")}
    os.environ.update(dict.fromkeys(before, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
