"""Host names in probes, looked up by the node's resolver."""

from __future__ import annotations

import socket

from glasslet.host.threads import LOOK_UP, Threads
from glasslet.record.recorder import current_scope
from glasslet.record.stations import WaitKind

_WITHIN = 10.0


class NameResolver:
    """`connection.Resolve` in threads: a look-up hangs when its name server does."""

    def __init__(self, *, threads: Threads) -> None:
        self._threads = threads

    async def __call__(self, host: str) -> tuple[str, ...]:
        """The host's addresses. Raises OSError."""

        def look_up() -> tuple[str, ...]:
            try:
                found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except ValueError:
                # IDNA refuses empty and long labels before the resolver sees the name.
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
            return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))

        on = f"look-up of {host}"
        pod = current_scope().pod
        # A pod that looks a name up again and again holds up no other pod that wants the same name.
        key = on if pod is None else f"{on} for {pod.uid}"
        addresses: tuple[str, ...] = await self._threads.run(
            look_up, on=on, key=key, kind=WaitKind.PROBE, within=_WITHIN, place=LOOK_UP
        )
        return addresses
