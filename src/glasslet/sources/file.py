"""Static pods from manifest files: inotify reports changes, and all files are checked from time to time."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import closing

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.record.recorder import Recorder
from glasslet.sources.folder_watch import FolderWatch, Opener
from glasslet.sources.inotify import Inotify
from glasslet.sources.manifest import ManifestReader, Problem, shown
from glasslet.sources.manifest_files import ManifestFiles

_log = logging.getLogger(__name__)


class FileSourceConfig(Struct, frozen=True):
    """`paths`: folders or files (flag --pod-manifest-path, staticPodPath)."""

    paths: tuple[str, ...]
    check_seconds: float = 20.0
    """fileCheckFrequency: seconds between checks of all files, whatever the kernel reports."""
    every_document: bool = False
    """Take all YAML documents of a file, and PodLists; the kubelet takes the first document only, and only a Pod."""


class FileSource:
    """Gives `deliver` all pods of its paths, first at once, then whenever they change. Bad files become findings."""

    def __init__(
        self,
        *,
        config: FileSourceConfig,
        reader: ManifestReader,
        deliver: Callable[[list[Pod]], None],
        recorder: Recorder,
        open_inotify: Opener = Inotify,
    ) -> None:
        self._threads = OwnThreads("manifest files")
        self._check_seconds = config.check_seconds
        self._files = ManifestFiles(paths=config.paths, reader=reader, every_document=config.every_document)
        self._deliver = deliver
        self._recorder = recorder
        self._open_inotify = open_inotify
        self._delivered: list[Pod] | None = None
        self._reported: frozenset[str] = frozenset()
        self._broken: tuple[Problem, ...] = ()

    def broken(self) -> tuple[Problem, ...]:
        """Problems of files that no pod came of, as of the last check."""
        return self._broken

    async def run(self) -> None:
        """Runs until cancelled."""
        loop = asyncio.get_running_loop()
        with closing(
            FolderWatch(folders=self._folders, recorder=self._recorder, open_inotify=self._open_inotify)
        ) as watch:
            next_full = loop.time()
            changed: set[str] | None = None
            while True:
                if self._files.forget(watch.take_removed()):
                    self._report()
                # The watch comes first: a change between it and the check is seen twice, never missed.
                established = watch.establish(renew=loop.time() >= next_full)
                if changed is None or established or loop.time() >= next_full:
                    await self._threads.run(self._files.check_all)
                    next_full = loop.time() + self._check_seconds
                elif changed:
                    await self._threads.run(self._files.check, changed)
                self._report()
                changed = await watch.wait(max(0.0, next_full - loop.time()))

    def _folders(self) -> frozenset[str]:
        """Folders are watched themselves; for a single file its folder is, since editors replace files."""
        return frozenset(
            path if os.path.isdir(path) or not os.path.exists(path) else os.path.dirname(path) or "."
            for path in self._files.paths
        )

    def _report(self) -> None:
        findings = dict.fromkeys(self._files.findings())
        for text in findings:
            if text not in self._reported:
                self._recorder.finding(text)
                _log.warning("manifest problem", extra={"problem": text})
        for text in self._reported - findings.keys():
            self._recorder.withdrawn(text)
        self._reported = frozenset(findings)
        self._broken = tuple(self._files.broken())
        pods = self._files.pods()
        if pods is None or (self._delivered is not None and _same(pods, self._delivered)):
            return
        self._delivered = pods
        _log.info(
            "static pods changed", extra={"pods": len(pods), "paths": [shown(path) for path in self._files.paths]}
        )
        self._deliver(pods)


def _same(pods: list[Pod], others: list[Pod]) -> bool:
    """Unchanged files give identical objects."""
    return len(pods) == len(others) and all(pod is other for pod, other in zip(pods, others, strict=True))
