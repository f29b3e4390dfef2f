"""The folder that `glasslet up` keeps everything in, and what is remembered there from one call to the next.

<state>/kubelet/        the agent's root folder, its socket and records in it
<state>/manifests/      links to what runs
<state>/config.yaml     the agent's configuration, written at each start
<state>/agent.log       what the agent says; agent.pid: which process it is
<state>/containerd/     the private containerd: configuration, data, network, log
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import msgspec

DEFAULT = Path("/var/lib/glasslet")


class RuntimeChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What `down` has to know. `private`: this state has a containerd of its own."""

    endpoint: str
    private: bool


class StateDir:
    """Paths, all absolute."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.root_dir = self.path / "kubelet"
        self.manifests = self.path / "manifests"
        self.config = self.path / "config.yaml"
        self.agent_log = self.path / "agent.log"
        self.agent_pid = self.path / "agent.pid"
        self.containerd = self.path / "containerd"
        self.run = Path("/run/glasslet") / self.key
        self._memory = self.path / "up.json"

    @property
    def key(self) -> str:
        """Eight characters that are this state's own: names of its bridge and of its run folder."""
        return f"{zlib.crc32(os.fsencode(self.path)):08x}"

    def make(self) -> None:
        """Makes the folders. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.root_dir.mkdir(mode=0o750, exist_ok=True)
        self.manifests.mkdir(exist_ok=True)

    def remember(self, memory: RuntimeChoice) -> None:
        """Keeps what `down` has to know."""
        temporary = self._memory.with_suffix(".new")
        temporary.write_bytes(msgspec.json.encode(memory))
        temporary.replace(self._memory)

    def recall(self) -> RuntimeChoice | None:
        """What was kept, None if nothing (readable) was."""
        try:
            return msgspec.json.decode(self._memory.read_bytes(), type=RuntimeChoice)
        except (OSError, msgspec.MsgspecError):
            return None

    def forget(self) -> None:
        """Nothing runs here any more."""
        self._memory.unlink(missing_ok=True)
