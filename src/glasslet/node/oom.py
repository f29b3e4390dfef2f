"""Out-of-memory kills in the words of the kernel's log. Pure.

A kill is several lines. Since kernel 5.0 the line `oom-kill:` has all; before, the victim's cgroup and the one whose
limit was reached stand in a line of their own, and the process in the last one.
"""

from __future__ import annotations

import re

from msgspec import Struct

ROOT = "/"
_WHOLE = re.compile(
    r"oom-kill:constraint=[^,]*,.*?,(?:oom_memcg=(?P<limit>.*)|global_oom),task_memcg=(?P<victim>.*),"
    r"task=(?P<process>.*),pid=(?P<pid>\d{1,10}),uid=\d+\s*"
)
_GROUPS = re.compile(r"\s*Task in (?P<victim>.*) killed as a result of limit of (?P<limit>.*)")
_KILLED = re.compile(r".*Killed process (?P<pid>\d{1,10}) \((?P<process>.*?)\)(?: |,|$).*")


class OomKill(Struct, frozen=True, kw_only=True):
    """One kill. `limit`: the cgroup whose limit was reached, `/` if the machine's memory was; `victim`: the cgroup of
    the process, "" if unknown."""

    process: str
    pid: int
    limit: str = ROOT
    victim: str = ""

    @property
    def of_system(self) -> bool:
        """Whether the machine ran out of memory, not a cgroup."""
        return self.limit == ROOT


class OomParser:
    """Takes the lines of the log in order."""

    def __init__(self) -> None:
        self._under_way = False
        self._limit, self._victim = ROOT, ""

    def take(self, line: str) -> OomKill | None:
        """The kill that this line completes."""
        if "invoked oom-killer:" in line:
            self._under_way, self._limit, self._victim = True, ROOT, ""
        elif not self._under_way:
            return None
        elif (whole := _WHOLE.fullmatch(line)) is not None:
            self._limit, self._victim = whole["limit"] or ROOT, whole["victim"]
            return self._ended(whole)
        elif (groups := _GROUPS.fullmatch(line)) is not None:
            self._limit, self._victim = groups["limit"].strip(), groups["victim"]
        elif (killed := _KILLED.fullmatch(line)) is not None:
            return self._ended(killed)
        return None

    def _ended(self, found: re.Match[str]) -> OomKill:
        self._under_way = False
        return OomKill(process=found["process"], pid=int(found["pid"]), limit=self._limit, victim=self._victim)


def system_oom(kill: OomKill) -> str:
    """The text of the event SystemOOM."""
    return f"System OOM encountered, victim process: {kill.process}, pid: {kill.pid}"


def kill_words(kill: OomKill, container: str, container_id: str) -> str:
    """What happened to a process of this container, and whose limit it was."""
    if kill.of_system:
        why = "the node ran out of memory"
    elif container_id in kill.limit.rpartition("/")[2]:
        why = "the container reached its memory limit"
    else:
        why = f"the memory limit of cgroup {kill.limit} was reached"
    return f"The kernel killed process {kill.process} (pid {kill.pid}) of container {container}: {why}"
