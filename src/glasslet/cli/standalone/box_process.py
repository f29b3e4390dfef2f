"""The controllers of workloads as a process: `python -m glasslet.box`, and the list of files that they run."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from glasslet.answers.box import BoxAnswer, BoxSources, SourceFile
from glasslet.cli.failure import Failure
from glasslet.cli.standalone import processes
from glasslet.cli.standalone.state_dir import StateDir

_STOP_SECONDS = 10.0


class BoxProcess:
    """The controllers of one state folder. They run while there are files for them."""

    def __init__(self, state: StateDir) -> None:
        self.state = state

    @property
    def sources(self) -> BoxSources:
        """What they run."""
        try:
            return msgspec.json.decode(self._list.read_bytes(), type=BoxSources)
        except (OSError, msgspec.MsgspecError):
            return BoxSources()

    def add(self, files: Iterable[SourceFile]) -> None:
        """Adds files. A file that is there keeps its place in the order."""
        known = {file.place: file for file in self.sources.files}
        known |= {file.place: file for file in files}
        self._keep(replace(self.sources, files=tuple(known.values())))

    def remove(self, places: Iterable[str]) -> int:
        """Removes files; returns their number."""
        gone, before = set(places), self.sources
        left = tuple(file for file in before.files if file.place not in gone)
        if len(left) != len(before.files):
            self._keep(replace(before, files=left))
        return len(before.files) - len(left)

    def place(self, *, gateway: str, services: str) -> None:
        """Where names are served, and which addresses services get."""
        self._keep(replace(self.sources, gateway=gateway, services=services))

    def running(self) -> int | None:
        """Their pid, None if they do not run."""
        return processes.find(self.state.box_pid, mark=f"glasslet.box run {self.state.path}")

    def ensure(self) -> None:
        """Starts them if there are files and they do not run."""
        if not self.sources.files or self.running() is not None:
            return
        socket = self.state.root_dir / "glasslet.sock"
        processes.start(
            [sys.executable, "-P", "-m", "glasslet.box", "run", str(self.state.path), str(socket)],
            pid_file=self.state.box_pid,
            log=self.state.box_log,
            environment={},
        )

    def stop(self) -> None:
        """Ends them; their pods keep running."""
        if (pid := self.running()) is not None:
            processes.stop(pid, seconds=_STOP_SECONDS)
        self.state.box_pid.unlink(missing_ok=True)

    def status(self) -> BoxAnswer | None:
        """What they say of the files of now; None while they have not read them."""
        if not self.sources.files:
            return BoxAnswer(settled=True)
        said = self.state.box / "status.json"
        try:
            if said.stat().st_mtime_ns < self._list.stat().st_mtime_ns:
                return None
            answer = msgspec.json.decode(said.read_bytes(), type=BoxAnswer)
        except (OSError, msgspec.MsgspecError):
            if self.running() is None:
                lines = processes.last_lines(self.state.box_log, 8)
                raise Failure(f"the controllers have ended; the end of {self.state.box_log}:\n{lines}") from None
            return None
        return answer if {file.place for file in self.sources.files} == set(answer.files) or answer.problem else None

    @property
    def _list(self) -> Path:
        return self.state.box / "sources.json"

    def _keep(self, sources: BoxSources) -> None:
        self.state.box.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._list.with_suffix(".new")
        with temporary.open("wb") as file:
            file.write(msgspec.json.encode(sources))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._list)


def preview(state: StateDir, files: Iterable[str]) -> int:
    """Prints what these files would change. 1 if a document of them is broken, else 0."""
    # The controllers' own code plans: this tool knows nothing of workloads.
    sys.stdout.flush()
    command = [sys.executable, "-P", "-m", "glasslet.box", "plan", str(state.path), *files]
    return subprocess.run(command, check=False).returncode  # noqa: S603


def fetched(state: StateDir, url: str) -> Path:
    """The text of a URL, kept as a file. Raises Failure."""
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=20.0) as answer:  # noqa: S310 - is_url: http or https
            data = answer.read(10 * 1024 * 1024 + 1)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise Failure(f"PATH: {url} cannot be fetched: {getattr(error, 'reason', None) or error}") from None
    folder = state.box / "fetched"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{zlib.crc32(url.encode()):08x}.yaml"
    path.write_bytes(data)
    return path


def is_url(path: str) -> bool:
    """Whether a PATH is a URL."""
    return path.startswith(("http://", "https://"))
