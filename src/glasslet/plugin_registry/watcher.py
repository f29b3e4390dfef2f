"""Keeps plugins registered whose sockets are in the folder: inotify reports changes, then the folder is listed. A
socket that is created again belongs to a new plugin.

    appeared ──▶ info ──▶ validate ──▶ register ──▶ notify      failed: again after 0.5 s, doubling to 2 min 2 s
    removed ──▶ deregister
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Protocol

from glasslet.concurrency.supervision import Supervisor
from glasslet.host.files.small_files import make_directory
from glasslet.plugin_registry.caller import NoAnswer, PluginInfo, RegistrationSocket
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 122.0
_LOOK_SECONDS = 10.0
"""Seconds between listings without a change: where watching fails, they find plugins."""
_FOLDER_MODE = 0o750


class PluginHandler(Protocol):
    """Registers plugins of one type. Problems are texts, "" for none."""

    def validate(self, name: str, versions: Collection[str]) -> str: ...
    async def register(self, name: str, endpoint: str) -> str: ...
    async def deregister(self, name: str, endpoint: str) -> None: ...


class SocketFolderWatch(Protocol):
    """Reports possible changes in some folders."""

    def establish(self, *, renew: bool) -> bool:
        """Watches all folders; True if one of them is new."""

    async def wait(self, timeout: float) -> object:
        """Waits for a change, at most `timeout` seconds."""

    def close(self) -> None: ...


class _Registrant:
    """One socket; `identity` distinguishes it from a later one at the same path. `earlier`: the one that it
    replaces."""

    def __init__(self, path: str, identity: tuple[int, int], earlier: _Registrant | None) -> None:
        self.path = path
        self.identity = identity
        self.earlier = earlier
        self.removed = asyncio.Event()
        self.again = asyncio.Event()
        """Ends a pause: the socket was removed, or another plugin left, which may have had the name."""
        self.ended = asyncio.Event()
        self.registered = False


class PluginRegistry:
    """Watches `folder` while `run()` does. `handlers` by plugin type (`DevicePlugin`, `CSIPlugin`, `DRAPlugin`)."""

    def __init__(
        self,
        *,
        folder: str,
        handlers: Mapping[str, PluginHandler],
        watch: Callable[[Callable[[], frozenset[str]]], SocketFolderWatch],
        recorder: Recorder,
    ) -> None:
        self._folder = folder
        self._handlers = handlers
        self._watch = watch
        self._recorder = recorder
        self._registrants: dict[str, _Registrant] = {}
        self._supervisor = Supervisor()

    async def run(self) -> None:
        """Runs until cancelled."""
        make_directory(self._folder, _FOLDER_MODE)
        folders: list[str] = []
        watch = self._watch(lambda: frozenset(folders))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._supervisor.run(), name="plugin registrations")
                while True:
                    found, folders[:] = sockets_below(self._folder)
                    self._compare(found)
                    # Another listing finds what came before a new watch was established.
                    if not watch.establish(renew=True):
                        await watch.wait(_LOOK_SECONDS)
        finally:
            watch.close()
            self._registrants.clear()

    def sockets(self) -> dict[str, bool]:
        """The sockets in the folder, and whether the plugin behind each is registered."""
        return {path: registrant.registered for path, registrant in self._registrants.items()}

    def _compare(self, found: Mapping[str, tuple[int, int]]) -> None:
        gone: dict[str, _Registrant] = {}
        for path, registrant in list(self._registrants.items()):
            if found.get(path) != registrant.identity:
                gone[path] = self._registrants.pop(path)
                registrant.removed.set()
                registrant.again.set()
        for path, identity in found.items():
            if path not in self._registrants:
                self._registrants[path] = registrant = _Registrant(path, identity, gone.get(path))
                self._supervisor.start(f"plugin {path}", partial(self._keep, registrant))

    async def _keep(self, registrant: _Registrant) -> None:
        """Registers the plugin, with retries, and deregisters it once its socket is removed."""
        if registrant.earlier is not None:
            # Registered while the earlier one is, it would be refused as a second one of its name.
            await registrant.earlier.ended.wait()
            registrant.earlier = None
        try:
            await self._keep_registered(registrant)
        finally:
            registrant.ended.set()

    async def _keep_registered(self, registrant: _Registrant) -> None:
        pause = _FIRST_PAUSE
        trouble = StandingFinding(self._recorder)
        while not registrant.removed.is_set():
            try:
                info = await self._register(registrant.path)
            except NoAnswer as error:
                text = f"RegisterPlugin error -- {error}"
                logger.warning("plugin not registered", extra={"socket": registrant.path, "error": text})
                trouble.is_(f"plugin at {registrant.path}: {error}")
                await self._rest(registrant, pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            trouble.over()
            logger.info("plugin registered", extra={"socket": registrant.path, "plugin": info.name, "type": info.type})
            registrant.registered = True
            await registrant.removed.wait()
            await self._handlers[info.type].deregister(info.name, info.endpoint)
            logger.info("plugin removed", extra={"socket": registrant.path, "plugin": info.name})
            for other in self._registrants.values():
                other.again.set()
        trouble.over()

    async def _register(self, path: str) -> PluginInfo:
        """One try. Raises NoAnswer."""
        socket = RegistrationSocket(path)
        try:
            await socket.dial()
            info = await socket.info()
            problem = await self._hand_over(info, path)
            await socket.notify(f"RegisterPlugin error -- {problem}" if problem else "")
        finally:
            await socket.close()
        if problem:
            raise NoAnswer(problem)
        return info

    async def _hand_over(self, info: PluginInfo, path: str) -> str:
        handler = self._handlers.get(info.type)
        if handler is None:
            return f"no handler registered for plugin type: {info.type} at socket {path}"
        if wrong := handler.validate(info.name, info.versions):
            return f"plugin validation failed with err: {wrong}"
        failed = await handler.register(info.name, info.endpoint)
        return f"plugin registration failed with err: {failed}" if failed else ""

    async def _rest(self, registrant: _Registrant, seconds: float) -> None:
        try:
            with self._recorder.wait(WaitKind.BACK_OFF, on=f"plugin at {registrant.path}"):
                async with asyncio.timeout(seconds):
                    await registrant.again.wait()
        except TimeoutError:
            return
        registrant.again.clear()


def sockets_below(folder: str) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """The sockets with their identities, and all folders; names that begin with a dot are left out."""
    folders = [folder]
    sockets = {}
    for parent in folders:
        for entry in _entries(parent):
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                # Removed since it was listed; inotify reports what comes in its place.
                continue
            if stat.S_ISDIR(found.st_mode):
                folders.append(entry.path)
            elif stat.S_ISSOCK(found.st_mode):
                sockets[entry.path] = (found.st_ino, found.st_ctime_ns)
    return sockets, folders


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if not entry.name.startswith("."))
    except OSError:
        return
