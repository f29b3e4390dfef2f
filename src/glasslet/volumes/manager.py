"""Mounts the volumes of pods on this node and removes them.

There is no list of mounted volumes: the pod's spec has what it needs, the disk below its directory what it has. Both
verbs read these first and do only what is missing, so a restarted agent continues where the last one stopped.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from glasslet.api.persistent_volume import source_of
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.volume import Volume
from glasslet.exchange.volume import MountedVolume, SubPath
from glasslet.host.files.layout import RootLayout, escaped
from glasslet.host.files.removal import printable, remove_empty
from glasslet.host.mounts.sub_path import bind_sub_path, release_sub_paths
from glasslet.host.mounts.table import resolved
from glasslet.host.threads import HERE, HostCallStuck, ThreadPlace, Threads
from glasslet.volumes.attachment import NotAttached
from glasslet.volumes.claims import ClaimProblem, volume_group
from glasslet.volumes.csi.migration import is_migrated, migrated
from glasslet.volumes.errors import VolumeNotReady
from glasslet.volumes.plugin import (
    REMOTE,
    WAIT_SECONDS,
    AttachedByController,
    Expandable,
    MountCalls,
    Staged,
    VolumePlugin,
    VolumeProblem,
    VolumeRequest,
    volume_key,
)
from glasslet.volumes.sources import CLAIMED, CSI, REFRESHED, used_volumes, volume_type
from glasslet.volumes.types.unserved import unserved
from glasslet.volumes.volume_counts import MAP, MOUNT, VolumeCounts

_log = logging.getLogger(__name__)

_OF_DEVICES = ("SetUpDevice", "MapPodDevice")
"""Steps of volumes that have no file system."""


class ClaimResolver(Protocol):
    """Finds the volumes behind claims (`volumes.claims`)."""

    async def resolve(self, pod: Pod, volume: Volume) -> VolumeRequest:
        """Raises ClaimProblem, VolumeProblem."""

    def forget(self, uid: str) -> None: ...


class Attachment(Protocol):
    """The controller that attaches volumes (`volumes.attachment`)."""

    async def wait(self, uid: str, name: str, *, here: bool) -> None:
        """`here`: the pod has the volume already. Raises VolumeProblem."""

    def forget(self, uid: str) -> None: ...


class _Phases(NamedTuple):
    """The optional phases of a plugin. Found once: a look at a protocol's methods costs a pod's start 0.03 ms."""

    attached: AttachedByController | None
    staged: Staged | None
    expandable: Expandable | None

    @classmethod
    def of(cls, plugin: VolumePlugin) -> _Phases:
        return cls(
            plugin if isinstance(plugin, AttachedByController) else None,
            plugin if isinstance(plugin, Staged) else None,
            plugin if isinstance(plugin, Expandable) else None,
        )


class VolumeManager:
    """All volumes of all pods. `plugins` is by the name of the source in a manifest (`emptyDir`). `attachment` None: no
    controller attaches anything here."""

    def __init__(
        self,
        *,
        root: RootLayout,
        plugins: Mapping[str, VolumePlugin],
        claims: ClaimResolver,
        mounts: MountCalls,
        threads: Threads,
        account: VolumeCounts | None = None,
        attachment: Attachment | None = None,
    ) -> None:
        self._root = root
        self._account = account or VolumeCounts()
        self._attachment = attachment
        self._claims = claims
        self._plugins = dict(plugins)
        self._by_directory = {escaped(plugin.name): plugin for plugin in plugins.values()}
        self._phases = {plugin.name: _Phases.of(plugin) for plugin in plugins.values()}
        self._mounts = mounts
        self._threads = threads
        self._claimed: dict[str, dict[str, str]] = {}
        self._kinds: dict[str, dict[str, str]] = {}

    def claimed(self, uid: str) -> Mapping[str, str]:
        """Mount points of volumes behind claims of the pod, by their names in the pod, without those that are the
        node's own files."""
        return self._claimed.get(uid, {})

    async def prepare(self, pod: Pod) -> Mapping[str, MountedVolume]:
        """Sets up every volume that a container of the pod uses, concurrently; returns them by name. Raises
        VolumeNotReady with the error of each that failed, after all were tried."""
        return await self._set_up_all(pod, used_volumes(pod))

    async def refresh(self, pod: Pod) -> None:
        """Brings what changed into volumes that are set up already: data, tokens, fields of the pod, what drivers want
        to be told again. Raises VolumeNotReady; what could not be brought up to date stays as it was."""
        following = [volume for volume in used_volumes(pod) if self._follows(pod.metadata.uid, volume)]
        if following:
            await self._set_up_all(pod, following)

    def _follows(self, uid: str, volume: Volume) -> bool:
        kind = volume_type(volume)
        if kind in CLAIMED or is_migrated(kind):
            # After a restart it is not known what is behind a claim: that is looked up once.
            kind = self._kinds.get(uid, {}).get(volume.name, CSI)
        return kind in REFRESHED or kind == CSI

    async def tear_down(self, ref: PodRef) -> None:
        """Removes all volumes of the pod, known ones and those found on disk; may be repeated. Raises
        VolumeNotReady while something resists."""
        uid = ref.uid
        self._account.unwanted(uid)
        problems: dict[str, str] = {}
        for name in _names(self._root.sub_paths(uid)):
            try:
                await self._release_sub_paths(uid, name)
            except OSError as error:
                problems[name] = words(error)
        for parent in (self._root.volumes(uid), self._root.volume_devices(uid)):
            for directory in _names(parent):
                for name in _names(f"{parent}/{directory}"):
                    if name in problems:
                        continue  # a subPath of it is still mounted
                    try:
                        await self._take_off(uid, f"{parent}/{directory}", name)
                    except (OSError, VolumeProblem) as error:
                        problems[name] = words(error)
        if not problems:
            for plugin in self._plugins.values():
                if (staged := self._phases[plugin.name].staged) is not None:
                    try:
                        await staged.release(uid)
                    except (OSError, VolumeProblem) as error:
                        problems[getattr(error, "of", "") or plugin.name] = words(error)
        if problems:
            raise VolumeNotReady(f"mounted volumes=[{' '.join(sorted(problems))}]: {'; '.join(problems.values())}")
        self._claims.forget(uid)
        if self._attachment is not None:
            self._attachment.forget(uid)
        self._claimed.pop(uid, None)
        self._kinds.pop(uid, None)
        self._account.forget(uid)

    async def bind_sub_paths(
        self, ref: PodRef, container: str, volumes: Mapping[str, MountedVolume], wanted: Iterable[SubPath]
    ) -> Mapping[int, str]:
        """Shows parts of volumes on the host, for a container that is about to be made: where, by the mount's index.
        One that failed is left out and logged: the pod's owner must not learn from messages what is on the node."""
        bound: dict[int, str] = {}
        for part in wanted:
            volume = volumes[part.volume]
            directory = volume.directory or volume.name
            target = self._root.sub_path(ref.uid, directory, container, part.index)
            bind = partial(bind_sub_path, self._mounts, volume=volume.path, path=part.path, target=target)
            try:
                await self._threads.run(
                    bind,
                    on=f"volume {part.volume}: bind subPath for {container}",
                    key=volume_key(ref.uid, directory),
                    within=WAIT_SECONDS,
                    place=self._place_of(ref.uid, directory),
                )
            except OSError as error:
                fields = {"pod": str(ref), "container": container, "volume": part.volume, "error": str(error)}
                _log.warning("subPath could not be prepared", extra=fields)
            else:
                bound[part.index] = target
        return bound

    async def _set_up_all(self, pod: Pod, volumes: Iterable[Volume]) -> Mapping[str, MountedVolume]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._set_up(pod, volume)) for volume in volumes]
        answers = [task.result() for task in tasks]
        problems = [answer for answer in answers if isinstance(answer, str)]
        if problems:
            raise VolumeNotReady(*problems)
        return {answer.name: answer for answer in answers if isinstance(answer, MountedVolume)}

    async def _set_up(self, pod: Pod, volume: Volume) -> MountedVolume | str:
        name = volume.name
        try:
            request = VolumeRequest(pod=pod, volume=volume)
            self._account.wanted(pod.metadata.uid, volume.name)
            if volume_type(volume) in CLAIMED:
                request = await self._claims.resolve(pod, volume)
                name = request.name
            return await self._mount(request)
        except ClaimProblem as problem:
            return (
                f"Unable to attach or mount volumes: unmounted volumes=[{name}], unattached volumes=[], "
                f"failed to process volumes=[{name}]: {problem}"
            )
        except NotAttached as problem:
            return (
                f"Unable to attach or mount volumes: unmounted volumes=[{volume.name}], "
                f"unattached volumes=[{volume.name}], failed to process volumes=[]: {problem}"
            )
        except HostCallStuck as error:
            return (
                f"Unable to attach or mount volumes: unmounted volumes=[{volume.name}], unattached volumes=[], "
                f"failed to process volumes=[]: {words(error)}"
            )
        except VolumeProblem as problem:
            verb = "MapVolume" if problem.step in _OF_DEVICES else "MountVolume"
            return f'{verb}.{problem.step} failed for volume "{problem.of or name}" : {problem}'
        except OSError as error:
            return f'MountVolume.SetUp failed for volume "{name}" : {words(error)}'

    async def _mount(self, request: VolumeRequest) -> MountedVolume:
        if CSI in self._plugins:
            request = migrated(request)
        persistent = request.persistent
        kind = volume_type(request.volume) if persistent is None else source_of(persistent)
        plugin = self._plugins.get(kind)
        if plugin is None:
            raise unserved(kind, request, self._plugins)
        uid = request.pod.metadata.uid
        self._kinds.setdefault(uid, {})[request.volume.name] = kind
        with self._account.mounting(uid, request.volume.name, plugin.name, MAP if request.block else MOUNT):
            mounted = await self._through_phases(plugin, request)
        if persistent is None:
            return mounted
        if mounted.path and mounted.path == self._root.volume(uid, plugin.name, request.name):
            self._claimed.setdefault(uid, {})[mounted.name] = mounted.path
        return replace(mounted, directory=request.name, supplemental_group=volume_group(persistent))

    async def _through_phases(self, plugin: VolumePlugin, request: VolumeRequest) -> MountedVolume:
        """Attach, stage, set up, expand: those that the plugin has."""
        phases = self._phases[plugin.name]
        if self._attachment is not None and phases.attached is not None:
            name = await phases.attached.attachment(request)
            if name:
                here = self._is_here(plugin, request)
                try:
                    await self._attachment.wait(request.pod.metadata.uid, name, here=here)
                except NotAttached as problem:
                    why = await phases.attached.why_not_attached(request)
                    raise NotAttached(f"{problem}: {why}" if why else str(problem)) from None
        if phases.staged is not None:
            await phases.staged.stage(request)
        mounted = await plugin.set_up(request)
        if phases.expandable is not None:
            await phases.expandable.expand(request, mounted)
        return mounted

    def _is_here(self, plugin: VolumePlugin, request: VolumeRequest) -> bool:
        """Whether the pod has the volume: it was attached then, and stays so while it is reported as in use."""
        uid = request.pod.metadata.uid
        if request.block:
            return os.path.exists(self._root.volume_device(uid, plugin.name, request.name))
        path = resolved(self._root.volume(uid, plugin.name, request.name))
        return bool(self._mounts.table().at_or_below(path))

    async def _take_off(self, uid: str, directory: str, name: str) -> None:
        kind = os.path.basename(directory)
        plugin = self._by_directory.get(kind)
        if plugin is not None:
            with self._account.unmounting(uid, name, plugin.name):
                await plugin.tear_down(uid, name)
            return
        removed = await self._threads.run(
            partial(remove_empty, f"{directory}/{name}"),
            on=f"volume {name}: remove empty directory",
            key=volume_key(uid, name),
            within=WAIT_SECONDS,
        )
        if not removed:
            raise VolumeProblem(f'volume "{name}" of type {kind} holds data and is not one that this node knows')

    async def _release_sub_paths(self, uid: str, volume: str) -> None:
        await self._threads.run(
            partial(release_sub_paths, self._mounts, f"{self._root.sub_paths(uid)}/{volume}"),
            on=f"volume {volume}: unmount subPaths",
            key=volume_key(uid, volume),
            within=WAIT_SECONDS,
            place=self._place_of(uid, volume),
        )

    def _place_of(self, uid: str, directory: str) -> ThreadPlace:
        """Returns the place for work on a volume, by what is on disk: only directories of this node's own are read."""
        local = (plugin for plugin in self._plugins.values() if plugin.local)
        there = any(os.path.lexists(self._root.volume(uid, plugin.name, directory)) for plugin in local)
        return HERE if there else REMOTE


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []


def words(error: Exception) -> str:
    """Returns the error's text without number and class."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    # Names that a container gave may be no text at all.
    return printable(text)
