"""The node's resolv.conf: its content, and whether it exceeds the limits of pods."""

from __future__ import annotations

import errno
import os

from msgspec import Struct

MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_SEARCHES = 32
MAX_SEARCH_CHARS = 2048
MAX_SEARCH_LENGTH = 253
_CLUSTER_SEARCHES = 3


class ResolverFile(Struct, frozen=True, kw_only=True):
    """A parsed resolv.conf of the node. `absent`: the node is configured to have none (resolvConf is ""). `problem`:
    why the file cannot be used; no sandbox can be made then, whatever its policy."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    absent: bool = False
    problem: str = ""


class ResolverUnreadable(OSError):
    """The resolver file cannot be used. The text names the file and what is wrong."""

    def __init__(self, problem: str) -> None:
        super().__init__(errno.EINVAL, problem)
        self.problem = problem


class ResolverSource:
    """The resolver file, parsed once per change."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._version: tuple[int, int, int] | None = None
        self._file = self._seen = ResolverFile(absent=not path)

    def look(self) -> ResolverFile:
        """Returns the content, or `problem`. The same value as last time if the file did not change."""
        try:
            self._seen = self.current()
        except ResolverUnreadable as error:
            if error.problem != self._seen.problem:
                self._seen = ResolverFile(problem=error.problem)
        return self._seen

    def current(self) -> ResolverFile:
        """Returns the content. Raises ResolverUnreadable."""
        if not self.path:
            return self._file
        try:
            stat = os.stat(self.path)
            version = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if version != self._version:
                self._file = parse_resolver(_read(self.path))
                self._version = version
        except OSError as error:
            raise ResolverUnreadable(f"open {self.path}: {error.strerror}") from error
        return self._file


def parse_resolver(text: str) -> ResolverFile:
    """Name servers add up, the last search line wins, options add up with the later value winning. Raises
    ResolverUnreadable."""
    servers: list[str] = []
    searches: list[str] = []
    options: dict[str, str] = {}
    for line in text.split("\n"):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        match words[0]:
            case "nameserver" if len(words) > 1:
                servers.append(words[1])
            case "nameserver":
                raise ResolverUnreadable(
                    "Encountered error while parsing resolv conf file. Error: nameserver list is empty"
                )
            case "search":
                # The same domain with and without trailing dot must count once against the limits.
                searches = [word.removesuffix(".") for word in words[1:] if word != "."]
            case "options":
                options.update((word.split(":")[0], word) for word in words[1:])
    return ResolverFile(servers=tuple(servers), searches=tuple(searches), options=tuple(options.values()))


def resolver_limits(file: ResolverFile, path: str, *, cluster_domain: str = "") -> str | None:
    """Returns which limit of pods the node's file exceeds (event CheckLimitsForResolvConf), None for none."""
    most = MAX_SEARCHES - (_CLUSTER_SEARCHES if cluster_domain else 0)
    allowed = "which length is more than allowed"
    if len(file.searches) > most:
        return f"Resolv.conf file '{path}' contains search line consisting of more than {most} domains!"
    if any(len(search) > MAX_SEARCH_LENGTH for search in file.searches):
        return f'Resolv.conf file "{path}" contains a search path {allowed} {MAX_SEARCH_LENGTH} chars!'
    if len(" ".join(file.searches)) > MAX_SEARCH_CHARS:
        return f"Resolv.conf file '{path}' contains search line {allowed} {MAX_SEARCH_CHARS} chars!"
    return None


def _read(path: str) -> str:
    # A resolver file may be anything that an administrator links to: a fifo must not stop the agent.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if data is None or len(data) > MAX_FILE_BYTES:
        raise ResolverUnreadable(f"{path} is no regular file of at most {MAX_FILE_BYTES} bytes")
    return data.decode("utf-8", "replace")
