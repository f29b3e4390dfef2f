"""The state folder of `glasslet up`, and what it keeps from one call to the next.

<state>/kubelet/        the agent's root folder, its socket and records in it
<state>/manifests/      links to the manifests
<state>/config.yaml     the agent's configuration, written at each start
<state>/agent.log       the agent's log; agent.pid: its process
<state>/containerd/     the private containerd: configuration, data, network, log
<state>/box/            the files of workloads, and what their controllers remember; box.log: their log
<state>/objects/        ConfigMaps, Secrets and claims for the agent, readable for root only
<state>/claims/         the folders of claims; they stay until `down --volumes`
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import msgspec

DEFAULT = Path("/var/lib/glasslet")


class RuntimeChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The runtime that `up` used. `private`: the containerd of this state folder."""

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
        self.box = self.path / "box"
        self.box_log = self.path / "box.log"
        self.box_pid = self.path / "box.pid"
        self.objects = self.path / "objects"
        self.claims = self.path / "claims"
        self.run = Path("/run/glasslet") / self.key
        self._memory = self.path / "up.json"

    @property
    def key(self) -> str:
        """Eight characters that identify this state: in the names of its bridge and run folder."""
        return f"{zlib.crc32(os.fsencode(self.path)):08x}"

    def make(self) -> None:
        """Creates the folders. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.root_dir.mkdir(mode=0o750, exist_ok=True)
        self.manifests.mkdir(exist_ok=True)
        self.objects.mkdir(mode=0o700, exist_ok=True)

    def remember(self, runtime: RuntimeChoice) -> None:
        """Keeps the runtime for `down`."""
        temporary = self._memory.with_suffix(".new")
        temporary.write_bytes(msgspec.json.encode(runtime))
        temporary.replace(self._memory)

    def recall(self) -> RuntimeChoice | None:
        """The kept runtime, None without a readable one."""
        try:
            return msgspec.json.decode(self._memory.read_bytes(), type=RuntimeChoice)
        except (OSError, msgspec.MsgspecError):
            return None

    def forget(self) -> None:
        """Forgets the runtime: nothing runs here now."""
        self._memory.unlink(missing_ok=True)
