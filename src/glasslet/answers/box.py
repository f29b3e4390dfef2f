"""What the controllers of `glasslet up` say: each workload, and each document that is not done as written."""

from __future__ import annotations

from glasslet.answers.wire import WireMessage


class WorkloadRow(WireMessage, frozen=True, kw_only=True):
    """One workload. `ready`: pods that are ready, or of a job completions; `settled`: waiting changes nothing more."""

    kind: str
    namespace: str
    name: str
    ready: int = 0
    wanted: int = 0
    settled: bool = False
    failed: bool = False
    note: str = ""


class FindingRow(WireMessage, frozen=True, kw_only=True):
    """A document that does not do here what is written; `broken`: it is wrong."""

    text: str
    broken: bool = False


class BoxAnswer(WireMessage, frozen=True, kw_only=True):
    """All of it. `files`: those that were read; `settled`: nothing is on its way; `problem`: what keeps the
    controllers from working, "" if nothing does."""

    files: tuple[str, ...] = ()
    workloads: tuple[WorkloadRow, ...] = ()
    findings: tuple[FindingRow, ...] = ()
    pods: int = 0
    settled: bool = False
    problem: str = ""


class SourceFile(WireMessage, frozen=True, kw_only=True):
    """One file. `place`: as it was named (a path or a URL); `file`: where its text is on this machine."""

    place: str
    file: str


class BoxSources(WireMessage, frozen=True, kw_only=True):
    """What the controllers run. `gateway`: the address of the pods' bridge, where names are served ("": not at all);
    `services`: the network of the services' addresses."""

    files: tuple[SourceFile, ...] = ()
    gateway: str = ""
    services: str = ""
