"""The answers to `waits`, `tasks`, and about the agent itself."""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.wire import WireMessage


class WaitRow(WireMessage, frozen=True, kw_only=True):
    """One live wait. `pod`: `namespace/name`, "" for the agent's own; `until`: when it ends by itself, if known;
    `node`: set where the answers of several nodes are put together."""

    kind: str
    on: str
    since: datetime
    pod: str = ""
    container: str = ""
    station: str = ""
    until: datetime | None = None
    task: str = ""
    node: str = ""


class WaitsAnswer(WireMessage, frozen=True, kw_only=True):
    """Every live wait, the longest first."""

    waits: tuple[WaitRow, ...] = ()


class TaskRow(WireMessage, frozen=True, kw_only=True):
    """One task of the agent. `at`: its position in the code (`file:line function`); `node`: as in WaitRow."""

    name: str
    at: str
    pod: str = ""
    wait: str = ""
    node: str = ""


class TasksAnswer(WireMessage, frozen=True, kw_only=True):
    """Every task, by name."""

    tasks: tuple[TaskRow, ...] = ()


class ManifestProblem(WireMessage, frozen=True, kw_only=True):
    """One problem of a manifest file that no pod came of. `line` 0: the file as a whole."""

    file: str
    message: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"


class AgentAnswer(WireMessage, frozen=True, kw_only=True):
    """The agent. `runtime_pods`: pods in the runtime, desired or not; `record`: size and place of the record."""

    version: str
    pid: int
    started_at: datetime | None = None
    node: str = ""
    root_dir: str = ""
    runtime: str = ""
    runtime_endpoint: str = ""
    runtime_error: str = ""
    network_error: str = ""
    ready: bool = False
    desired_pods: int = 0
    runtime_pods: int = 0
    findings: tuple[str, ...] = ()
    broken_manifests: tuple[ManifestProblem, ...] = ()
    record: str = ""
