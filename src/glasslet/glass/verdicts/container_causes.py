"""Why the runtime or this agent refuses to create or start a container, cut from the chain of errors. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from glasslet.answers.words import size_words
from glasslet.api.container import Container
from glasslet.glass.verdicts.causes import Cause, last_part

_Pattern = tuple[str, Callable[[re.Match[str], Container], Cause]]
_COMMAND: Final = "correct command, args or image"
_CAUSES: Final[tuple[_Pattern, ...]] = (
    (
        r"files of the container could not be made(?: \((?P<path>[^)]*)\))?: (?P<why>.*)",
        lambda m, _: Cause(
            f"the agent cannot write its files {m['path'] or 'below its root directory'}: {m['why']}",
            "free space on the disk of the agent's root directory, or make it writable (df, df -i, dmesg)",
        ),
    ),
    (
        r"no space left on device",
        lambda _, __: Cause("no space is left on the runtime's disk", "free space on that disk (df; unused images)"),
    ),
    (
        r'exec: "(?P<what>[^"]*)": (?:stat [^:]*: no such file|executable file not found)',
        lambda m, _: Cause(f"its command {m['what']} does not exist in the image", _COMMAND),
    ),
    (
        r'exec: "(?P<what>[^"]*)": (?:.*)permission denied',
        lambda m, _: Cause(
            f"its command {m['what']} cannot be executed (permission denied)",
            "make that file executable in the image, or name another command",
        ),
    ),
    (
        r'exec: "(?P<what>[^"]*)": (?:.*)(?:is a directory|exec format error)',
        lambda m, _: Cause(f"its command {m['what']} is no program of this machine", _COMMAND),
    ),
    (
        r"exec [^:]*: exec format error|exec format error",
        lambda _, __: Cause(
            "its command is a program for another architecture (exec format error)",
            "use an image built for the node's architecture",
        ),
    ),
    (
        r'error mounting "[^"]*/containers/[^/"]+/[0-9a-f]{8}" to rootfs at "(?P<at>[^"]*)".*not a directory',
        lambda m, _: Cause(
            f"its terminationMessagePath {m['at']} is a folder in the image, and must be a file",
            "correct terminationMessagePath (usual: /dev/termination-log)",
        ),
    ),
    (
        r"unable to set memory limit to (?P<asked>\d+)(?: \(current usage: \d+, peak usage: (?P<needs>\d+)\))?",
        lambda m, it: Cause(
            f"its memory limit ({it.resources.limits.get('memory', m['asked'] + ' bytes')}) is too small to start a "
            "process" + (f": that alone takes {size_words(int(m['needs']))}" if m["needs"] else ""),
            "raise resources.limits.memory",
        ),
    ),
    (
        r'cannot load seccomp profile "(?P<path>[^"]*)": open [^:]*: no such file or directory',
        lambda m, _: Cause(
            f"its seccomp profile {m['path']} does not exist on this node",
            "put the profile there, or correct securityContext.seccompProfile.localhostProfile",
        ),
    ),
    (
        r'path "(?P<path>[^"]*)" is mounted on "(?P<on>[^"]*)" but it is not a (?P<kind>shared(?: or slave)?) mount',
        lambda m, _: Cause(
            f"a volume wants mountPropagation, and its path {m['path']} is on a mount of the node that is not "
            f"{m['kind']}",
            f"make it so (mount --make-rshared {m['on']}), or leave mountPropagation out",
        ),
    ),
    (
        r"Cwd must be an absolute path",
        lambda _, it: Cause(f"its working directory {it.working_dir} is no absolute path", "correct workingDir"),
    ),
    (
        r'error mounting "(?P<source>[^"]*)" to rootfs at "(?P<at>[^"]*)".*not a directory',
        lambda m, _: Cause(
            f"a volume cannot be mounted at {m['at']}: one of the two is a folder, the other a file ({m['source']})",
            "mount it at a folder, or name one file with subPath",
        ),
    ),
    (
        r'error mounting "(?P<source>[^"]*)" to rootfs at "(?P<at>[^"]*)".*?: (?P<why>[^:]+?)(?:: unknown)?$',
        lambda m, _: Cause(
            f"a volume cannot be mounted at {m['at']} ({m['source']}): {m['why']}",
            "correct mountPath, or the volume",
        ),
    ),
    (
        r'(?:chdir to cwd \("(?P<cwd>[^"]*)"\)[^:]*|mkdir (?P<made>/[^:]*)): (?P<why>[^:]+?)(?:: unknown)?$',
        lambda m, it: Cause(
            f"its working directory {m['cwd'] or it.working_dir or m['made']} cannot be used: {m['why']}",
            "correct workingDir",
        ),
    ),
    (
        r"runAsNonRoot and image will run as root",
        lambda _, __: Cause(
            "it must not run as root (runAsNonRoot), and its image runs as root",
            "set runAsUser to another user than 0, or use an image with such a USER",
        ),
    ),
    (
        r"non-numeric user \((?P<user>[^)]*)\)",
        lambda m, _: Cause(
            f"it must not run as root (runAsNonRoot), and its image names its user ({m['user']}, a non-numeric user), "
            "whose number is not known",
            "set runAsUser to that user's number",
        ),
    ),
    (
        r"(?:runAsUser breaks non-root policy|run as root)",
        lambda _, __: Cause("runAsNonRoot forbids its runAsUser 0", "set runAsUser to another user than 0"),
    ),
    (
        r"unable to find user (?P<user>[^:]+)",
        lambda m, _: Cause(
            f"user {m['user']} does not exist in its image", "use a number as runAsUser, or another image"
        ),
    ),
    (
        r"missing value for (?P<name>\S+)",
        lambda m, _: Cause(
            f"its subPathExpr names variable {m['name']}, which it does not have",
            "set the variable, or correct subPathExpr",
        ),
    ),
    (
        r'failed to prepare subPath for volumeMount "(?P<volume>[^"]*)"',
        lambda m, it: Cause(
            f"subPath {_sub_path(it, m['volume'])} of volume {m['volume']} cannot be used: most often it leads out of "
            "the volume by a link",
            "correct subPath, or what the volume holds there (the agent's log has the error)",
        ),
    ),
    (
        r"""failed to reserve container name|name "[^"]*" is reserved""",
        lambda _, __: Cause(
            "the runtime is still creating an earlier instance of it, most often because its disk is slow",
            "wait; check the disk of the runtime and its log if it lasts",
        ),
    ),
)


def _sub_path(it: Container, volume: str) -> str:
    parts = (mount.sub_path or mount.sub_path_expr for mount in it.volume_mounts if mount.name == volume)
    return next((part for part in parts if part), "")


def container_cause(chain: str, container: Container | None) -> Cause:
    """The cause; without words of our own the last part of the chain."""
    for pattern, made in _CAUSES:
        if (found := re.search(pattern, chain.strip())) is not None:
            return made(found, container or Container())
    return Cause(last_part(chain.removesuffix(": unknown")) if ": runc " in chain else chain)
