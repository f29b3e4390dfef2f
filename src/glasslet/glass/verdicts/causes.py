"""Cuts a runtime's chain of errors to its cause. Pure; the chain itself stays in the evidence."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

_LENGTH: Final = 160
"""Characters of a cause for which there are no words of our own."""

_READ: Final = 2000
"""Characters at the end of a chain that are searched."""
_QUOTED: Final = re.compile(r'"[^"]*"')


class Cause(Struct, frozen=True):
    """The cause as a clause, and what helps against it ("": nothing in particular)."""

    words: str
    next_step: str = ""


_Pattern = tuple[str, Callable[[re.Match[str]], Cause]]

_REACH: Final = "check that the registry runs and that this node reaches it; the agent tries again"
_TRUST: Final = "install the registry's CA on the node, or configure the runtime for this registry (certs.d)"
_LOGIN: Final = "check the image's name, and that imagePullSecrets or a credential provider give the right login"
_IMAGES: Final[tuple[_Pattern, ...]] = (
    (
        r"no space left on device",
        lambda _: Cause(
            "no space is left on the runtime's disk", "free space on the runtime's disk (df; unused images)"
        ),
    ),
    (
        r"no match for platform in manifest|no matching manifest for",
        lambda _: Cause(
            "the image has no variant for this node's platform",
            "use an image built for the node's architecture",
        ),
    ),
    (
        r"server gave HTTP response to HTTPS client|first record does not look like a TLS handshake",
        lambda _: Cause("the registry speaks HTTP, not TLS", "configure the runtime to use HTTP for this registry"),
    ),
    (
        r"(?:x509|tls): (?!failed to verify)(?P<why>[^:\"\]]+)",
        lambda m: Cause(f"TLS with the registry fails: {m['why'].strip()}", _TRUST),
    ),
    (
        r"(?:dial tcp )?(?P<at>\S+): connect: connection refused",
        lambda m: Cause(f"{m['at']} refused the connection", _REACH),
    ),
    (
        r"lookup (?P<host>[^\s:]+)[^:]*(?::\d+)?: no such host",
        lambda m: Cause(f"host {m['host']} is unknown", "check the registry's name and the node's DNS"),
    ),
    (
        r"lookup (?P<host>[^\s:]+).*?: (?P<why>server misbehaving|i/o timeout|[^:]*temporary failure[^:]*)",
        lambda m: Cause(f"the node's DNS cannot resolve {m['host']} ({m['why'].strip()})", "check the node's DNS"),
    ),
    (
        r"(?:dial tcp )?(?P<at>\S+): (?:connect: )?(?P<why>i/o timeout|no route to host|network is unreachable)",
        lambda m: Cause(f"no connection to {m['at']}: {m['why']}", _REACH),
    ),
    (
        r"(?:toomanyrequests|429 Too Many Requests)",
        lambda _: Cause("the registry limits the rate of pulls (429)", "wait, or use a login or a mirror"),
    ),
    (
        r"pull access denied|insufficient_scope",
        lambda _: Cause("access denied: the repository does not exist or needs a login", _LOGIN),
    ),
    (
        r"(?i)401 unauthorized|unauthorized|authentication required|no basic auth credentials|incorrect username",
        lambda _: Cause("the registry did not accept the login (unauthorized)", _LOGIN),
    ),
    (r"403 Forbidden|denied", lambda _: Cause("the registry denies access (forbidden)", _LOGIN)),
    (
        r"manifest unknown|name unknown|: not found|404 Not Found",
        lambda _: Cause("the registry has no such image or tag", "correct the image's name or tag"),
    ),
    (
        r"(?:unexpected status|failed with status code).*?: (?P<status>5\d\d [A-Za-z ]+)",
        lambda m: Cause(f"the registry answers {m['status'].strip()}", "check the registry; the agent tries again"),
    ),
    (
        r"connection reset by peer|unexpected EOF",
        lambda m: Cause(f"the connection to the registry broke ({m[0]})", _REACH),
    ),
    (r"context deadline exceeded|Deadline ?Exceeded", lambda _: Cause("the registry did not answer in time", _REACH)),
)

CNI_STEP: Final = "check the CNI configuration (/etc/cni/net.d) and plugins (/opt/cni/bin)"
_HUNG: Final = re.compile(r"deadline ?exceeded|signal: killed|timed? ?out|no error message", re.IGNORECASE)
_PLUGIN: Final = re.compile(
    r'plugin type="(?P<type>[^"]*)"(?: name="(?P<name>[^"]*)")? failed \((?P<call>\w+)\): (?P<why>.*)', re.DOTALL
)
_NO_PLUGIN: Final = re.compile(r'failed to find plugin "(?P<type>[^"]+)" in path \[?(?P<path>[^\]]*)\]?')
_NO_ADDRESS: Final = re.compile(r"no (?:IP )?addresses available in (?:range set|network)[: ]*(?P<range>\S+)")
_NO_PROGRAM: Final = re.compile(
    r"(?:fork/)?exec:? \"?(?P<path>[^\s:\"]+)\"?: (?:no such file|executable file not found)"
)
_NO_HANDLER: Final = re.compile(r'no runtime for "(?P<handler>[^"]*)" is configured')
_NO_SHIM: Final = re.compile(
    r"runtime \"?(?P<type>[^\s\":]+)\"? binary not installed \"?(?P<name>[^\s\":]+)|"
    r'exec: \\*"(?P<program>containerd-shim[^"\\]*)\\*": (?:executable file not found|file does not exist)'
)
_EXPECTS_SYSTEMD: Final = re.compile(r"expected cgroupsPath to be of format \W*slice:prefix:name")
_WANTS_FILES: Final = re.compile(r"(?:cgroup|mkdir)\S* ?(?P<path>\S*kubepods\S*\.slice:\S*)")
_PROGRAM_FAILED: Final = re.compile(
    r"(?P<path>/\S+) did not terminate success\w+: (?P<how>.*?)(?:: unknown)?$", re.DOTALL
)
_NO_SPACE: Final = re.compile(r"no space left on device", re.IGNORECASE)
_LOW_LEVEL: Final = re.compile(r"OCI runtime create failed: (?P<why>.*?)(?:: unknown)?$", re.DOTALL)
_SANDBOX_IMAGE: Final = re.compile(r'failed to get sandbox image "(?P<image>[^"]+)"(?P<rest>.*)', re.DOTALL)


def image_cause(chain: str) -> Cause | None:
    """The cause of a failed pull, None if the text holds none."""
    text = chain[-_READ:]
    # First without what is quoted: names and addresses may hold any word.
    for candidate in (_QUOTED.sub('""', text), text):
        for pattern, made in _IMAGES:
            if (found := re.search(pattern, candidate)) is not None:
                return made(found)
    return None


def sandbox_cause(chain: str) -> Cause | None:
    """The cause of a sandbox that could not be created, None if the text names none."""
    if (found := _NO_PLUGIN.search(chain)) is not None:
        step = "install the plugin there, or correct the CNI configuration (/etc/cni/net.d)"
        return Cause(f"network plugin {found['type']} is not installed in {found['path']}", step)
    if (found := _PLUGIN.search(chain)) is not None:
        plugin = f"network plugin {found['type']}" + (f" of network {found['name']}" if found["name"] else "")
        why = found["why"].strip()
        if (full := _NO_ADDRESS.search(why)) is not None:
            return Cause(
                f"{plugin} has no free address left in {full['range']}",
                "delete pods, or give the network more addresses; a crash may have left reservations of pods that are "
                "gone (host-local: /var/lib/cni/networks)",
            )
        if not why or _HUNG.search(why):
            step = f"look for the plugin's process and log; restart what plugin {found['type']} waits for"
            return Cause(f"{plugin} did not answer ({last_part(why) or 'no error message'})", step)
        return Cause(
            f"{plugin} failed: {_cut(why)}", f"check plugin {found['type']} and its configuration in /etc/cni/net.d"
        )
    if (found := _SANDBOX_IMAGE.search(chain)) is not None:
        cause = image_cause(found["rest"])
        why = f": {cause.words}" if cause is not None else ""
        return Cause(f"the sandbox image {found['image']} cannot be pulled{why}", cause.next_step if cause else "")
    if (below := _low_level(chain)) is not None:
        return below
    if "cni" in chain.lower() or "network" in chain.lower():
        return Cause(f"its network cannot be set up: {last_part(chain)}", CNI_STEP)
    if _HUNG.search(chain):
        step = "look for a network plugin that hangs (processes of /opt/cni/bin), and check the runtime's log"
        return Cause("the runtime did not finish in time, most often because a network plugin hangs", step)
    return None


def _low_level(chain: str) -> Cause | None:
    """What fails below the runtime: its disk, its handlers, the program that makes containers."""
    if _NO_SPACE.search(chain) is not None:
        return Cause("no space is left on the runtime's disk", "free space on the runtime's disk (df; unused images)")
    if (found := _NO_HANDLER.search(chain)) is not None:
        step = "correct the handler of the pod's RuntimeClass, or add it to the runtime's configuration on this node"
        return Cause(f"the runtime of this node has no handler {found['handler']}", step)
    if _EXPECTS_SYSTEMD.search(chain) is not None:
        return Cause(
            "the runtime's cgroup driver is systemd, this agent's is cgroupfs",
            "give both the same: cgroupDriver: systemd in the agent's configuration, or SystemdCgroup = false in the "
            "runtime's",
        )
    if _WANTS_FILES.search(chain) is not None:
        return Cause(
            "the runtime's cgroup driver is cgroupfs, this agent's is systemd",
            "give both the same: cgroupDriver: cgroupfs in the agent's configuration, or SystemdCgroup = true in the "
            "runtime's",
        )
    if (found := _NO_SHIM.search(chain)) is not None:
        return Cause(
            f"the runtime's shim {found['name'] or found['program']} is not installed",
            "install it beside containerd (package containerd), or correct runtime_type in the runtime's configuration",
        )
    if (found := _NO_PROGRAM.search(chain)) is not None:
        step = "install it, or correct the runtime's configuration (BinaryName)"
        return Cause(f"the runtime's program {found['path']} does not exist", step)
    if (found := _PROGRAM_FAILED.search(chain)) is not None:
        step = "run it by hand (--version), and see the runtime's log: its version and the kernel's have to fit"
        return Cause(f"the program that makes containers, {found['path']}, failed: {_cut(found['how'])}", step)
    if (found := _LOW_LEVEL.search(chain)) is not None:
        return Cause(
            f"the program that makes containers failed: {_cut(found['why'])}",
            "correct what it names; its version and the kernel's have to fit the runtime (runc --version)",
        )
    return None


def last_part(chain: str) -> str:
    """The last link of a chain of errors, where Go programs put the cause."""
    parts = [part.strip() for part in chain.split(": ")]
    return _cut(parts[-1]) if parts else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]} …"
