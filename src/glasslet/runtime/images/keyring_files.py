"""The node's own credentials: files of administrators for the kubelet, in Docker's places."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping

from glasslet.concurrency.clock import Clock
from glasslet.runtime.images.keyring import (
    BadKeyring,
    Keyring,
    keyring_of,
    parse_config_json,
    parse_dockercfg,
)
from glasslet.runtime.protocols import RegistryAuth

logger = logging.getLogger(__name__)

KEPT_SECONDS = 300.0


class NodeKeyring:
    """Credentials from the first file that can be read; re-read every five minutes."""

    def __init__(self, *, paths: Iterable[tuple[str, bool]], clock: Clock) -> None:
        """`paths` in order, each with whether it has the older form."""
        self._paths = tuple(paths)
        self._clock = clock
        self._read_at: float | None = None
        self._keyring = Keyring()

    def current(self) -> Keyring:
        """The current keyring."""
        now = self._clock.monotonic()
        if self._read_at is None or now >= self._read_at + KEPT_SECONDS:
            self._read_at = now
            self._keyring = self._read()
        return self._keyring

    def _read(self) -> Keyring:
        for path, legacy in self._paths:
            config = _config(path, parse_dockercfg if legacy else parse_config_json)
            if config is not None:
                return keyring_of([config])
        return Keyring()


def credential_paths(root_dir: str, home: str) -> tuple[tuple[str, bool], ...]:
    """Where the files may be: `config.json` first, then `.dockercfg`."""
    here = os.getcwd()
    homes = (f"{home}/.docker",) if home else ()
    new = [f"{folder}/config.json" for folder in (root_dir, here, *homes, "/.docker")]
    old = [f"{folder}/.dockercfg" for folder in (root_dir, here, *((home,) if home else ()), "")]
    return (*((path, False) for path in new), *((path, True) for path in old))


def _config(path: str, parse: Callable[[bytes], dict[str, RegistryAuth]]) -> Mapping[str, RegistryAuth] | None:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        logger.warning("registry credentials cannot be read", extra={"path": path, "error": error.strerror})
        return None
    try:
        return parse(data)
    except BadKeyring as error:
        logger.warning("registry credentials cannot be read", extra={"path": path, "error": str(error)})
        return None
