"""The addresses of services, as the machine's own: each is a /32 of the loopback interface."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence

_SEARCH = "/usr/sbin:/sbin:/usr/bin:/bin"


class OwnAddresses:
    """Knows which addresses it added."""

    def __init__(self) -> None:
        self._own: set[str] = set()

    async def show(self, addresses: Sequence[str]) -> list[str]:
        """Adds new ones and removes those that are not wanted any more. Returns what failed, in words."""
        wanted, problems = set(addresses), []
        for address in sorted(wanted - self._own):
            problem = await _ip("add", address)
            # It is there from an earlier run.
            if problem and "exists" not in problem and "assigned" not in problem:
                problems.append(f"address {address} of a service: {problem}")
            else:
                self._own.add(address)
        for address in sorted(self._own - wanted):
            await _ip("del", address)
            self._own.discard(address)
        return problems


async def _ip(verb: str, address: str) -> str:
    """Runs `ip address`; what went wrong, "" if nothing."""
    program = shutil.which("ip", path=_SEARCH)
    if program is None:
        return "ip is not installed; on Debian: apt-get install iproute2"
    process = await asyncio.create_subprocess_exec(
        program, "address", verb, f"{address}/32", "dev", "lo", stderr=asyncio.subprocess.PIPE
    )
    _, error = await process.communicate()
    return (
        ""
        if process.returncode == 0
        else error.decode(errors="replace").strip() or f"ip ended with {process.returncode}"
    )
