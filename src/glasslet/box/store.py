"""The state folder of `glasslet up`, as the controllers use it.

<state>/box/sources.json   what was named on the command line
<state>/box/memory.json    what the controllers remember
<state>/box/status.json    what they say (`answers.box`)
<state>/manifests/         their pods beside those that `up` links: `box.NAMESPACE.NAME.json`
<state>/objects/           ConfigMaps, Secrets and claims, readable for root only
<state>/claims/            folders of claims

Each file is written under another name, synced, and renamed: a loss of power leaves the old one or the new one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from glasslet.answers.box import BoxAnswer, BoxSources
from glasslet.box.documents import Plain, objects_of
from glasslet.box.plan import BoxMemory, BoxPlan, decode_memory, encode_memory
from glasslet.box.pods import WantedPod

_PREFIX = "box."


class BoxStore(Struct, frozen=True):
    """The files of one state folder."""

    state: Path

    @property
    def box(self) -> Path:
        """The controllers' own folder."""
        return self.state / "box"

    @property
    def manifests(self) -> Path:
        """The folder that the agent watches."""
        return self.state / "manifests"

    @property
    def objects(self) -> Path:
        """The folder that the agent reads objects of."""
        return self.state / "objects"

    def sources(self) -> BoxSources:
        """What is to run. Raises OSError, msgspec.MsgspecError."""
        try:
            return msgspec.json.decode((self.box / "sources.json").read_bytes(), type=BoxSources)
        except FileNotFoundError:
            return BoxSources()

    def memory(self) -> BoxMemory:
        """What is remembered. A file that cannot be read is moved aside: workloads are then counted anew."""
        path = self.box / "memory.json"
        try:
            return decode_memory(path.read_bytes())
        except FileNotFoundError:
            return BoxMemory()
        except (OSError, msgspec.MsgspecError):
            path.replace(path.with_suffix(".damaged"))
            return BoxMemory()

    def pods(self) -> dict[tuple[str, str], Plain]:
        """The manifests that the controllers wrote, by namespace and name."""
        found = {}
        for path in self.manifests.glob(f"{_PREFIX}*.json"):
            try:
                body = msgspec.json.decode(path.read_bytes(), type=dict)
                found[body["metadata"]["namespace"], body["metadata"]["name"]] = body
            except (OSError, msgspec.MsgspecError, KeyError, TypeError):
                path.unlink(missing_ok=True)
        return found

    def linked_pods(self) -> dict[tuple[str, str], Plain]:
        """The pods of files that `up` links, by namespace and name: services may choose them."""
        found = {}
        for path in self.manifests.iterdir():
            if path.name.startswith(_PREFIX):
                continue
            with suppress(OSError):
                for one in objects_of(path.read_bytes(), path.name).objects:
                    found[one.namespace, one.name] = one.body
        return found

    def apply(self, plan: BoxPlan) -> None:
        """Brings the folders to the plan: memory first, so that nothing runs that is not remembered. Raises OSError."""
        self._keep(self.box / "memory.json", encode_memory(plan.memory))
        for folder in plan.folders:
            self._claim(folder)
        self._keep_objects({f"{path}": body for path, body in plan.objects.items()})
        self._keep_pods(plan.pods)

    def say(self, answer: BoxAnswer) -> None:
        """Writes the status. Raises OSError."""
        self._keep(self.box / "status.json", msgspec.json.encode(answer), sync=False)

    def _keep_pods(self, pods: Sequence[WantedPod]) -> None:
        names = {f"{_PREFIX}{pod.namespace}.{pod.slot.name}.json": pod for pod in pods}
        for path in self.manifests.glob(f"{_PREFIX}*.json"):
            if path.name not in names:
                path.unlink(missing_ok=True)
        for name, pod in names.items():
            if pod.body is not None:
                self._keep(self.manifests / name, msgspec.json.encode(pod.body))

    def _keep_objects(self, objects: Mapping[str, Plain]) -> None:
        present = {path for path in self.objects.rglob("*") if path.is_file() and not path.name.startswith(".")}
        wanted = {self.objects / path: body for path, body in objects.items()}
        for path, body in wanted.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._keep(path, msgspec.json.encode(body))
        for path in present - set(wanted):
            path.unlink(missing_ok=True)

    def _claim(self, folder: Path) -> None:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            # Containers may run as any user, as with provisioners of local paths in clusters.
            folder.chmod(0o777)

    def _keep(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        try:
            if path.read_bytes() == data:
                return
        except OSError:
            pass
        temporary = path.with_name(f".{path.name}.new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)


def make_folders(state: Path) -> BoxStore:
    """The store of a state folder; its folders are made. Raises OSError."""
    store = BoxStore(state)
    for folder, mode in ((store.box, 0o700), (store.objects, 0o700), (store.manifests, 0o755)):
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
    return store
