"""The chains that a kubelet keeps in iptables (makeIPTablesUtilChains), and a watch over them.

`KUBE-IPTABLES-HINT` shows other programs which variant of iptables this node uses. `KUBE-FIREWALL` (IPv4) drops packets
to 127.0.0.0/8 that come from elsewhere; kube-proxy makes the same rule, so its words must stay. `KUBE-KUBELET-CANARY`
is gone when a program flushed the tables: then all is made again. Nothing is removed at the end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from glasslet.host.mounts.program import Ended, run_program
from glasslet.host.threads import HERE, HostCallStuck, Threads
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

EVERY: Final = 60.0
"""Seconds between two looks at the canary."""
FLUSH_TAKES: Final = 5.0
"""Seconds that a program may need to flush the other tables too."""
_FLUSH_STEP = 0.1
_TABLES = ("mangle", "nat", "filter")
_CANARY = "KUBE-KUBELET-CANARY"
_FIREWALL = "KUBE-FIREWALL"
_EXISTS_ALREADY = 1
_LOCALNET: Final = (
    *("-m", "comment", "--comment", "block incoming localnet connections"),
    *("--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8"),
    *("-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP"),
)
Run = Callable[[Sequence[str]], Ended]


class ChainStep(Struct, frozen=True):
    """One thing to have: `check` says whether it is there (None: `make` says so), `make` makes it."""

    make: tuple[str, ...]
    check: tuple[str, ...] | None = None


def steps(*, ipv6: bool) -> Iterator[ChainStep]:
    """What a family has, in order. Pure."""
    yield ChainStep(("-N", "KUBE-IPTABLES-HINT", "-t", "mangle"))
    if ipv6:
        return
    yield ChainStep(("-N", _FIREWALL, "-t", "filter"))
    for chain in ("OUTPUT", "INPUT"):
        rule = (chain, "-t", "filter", "-j", _FIREWALL)
        yield ChainStep(("-I", *rule), ("-C", *rule))
    drop = (_FIREWALL, "-t", "filter", *_LOCALNET)
    yield ChainStep(("-A", *drop), ("-C", *drop))


class NotMade(Exception):
    """A program refused."""


class Firewall:
    """One per node. `run` watches until it is cancelled."""

    def __init__(self, *, threads: Threads, recorder: Recorder, run: Run = run_program) -> None:
        self._threads = threads
        self._recorder = recorder
        self._program = run
        self._trouble: dict[str, StandingFinding] = {}

    async def run(self) -> None:
        """Makes the chains of each family that works here; watches those of which all could be made."""
        watched = []
        found = False
        for program in ("iptables", "ip6tables"):
            if not await self._works(program):
                continue
            found = True
            if await self._made(program):
                watched.append(program)
        if not found:
            logger.info("no iptables support on this system; not creating the KUBE-IPTABLES-HINT chain")
        while watched:
            await asyncio.sleep(EVERY)
            for program in watched:
                await self._look(program)

    async def _look(self, program: str) -> None:
        if not await self._gone(program, _TABLES[0]):
            return
        logger.info("iptables were flushed: chains are made again", extra={"program": program})
        for _ in range(round(FLUSH_TAKES / _FLUSH_STEP)):
            if await self._gone(program, _TABLES[1]) and await self._gone(program, _TABLES[2]):
                break
            await asyncio.sleep(_FLUSH_STEP)
        await self._made(program)

    async def _works(self, program: str) -> bool:
        return (await self._ask(program, ("-S", "POSTROUTING", "-t", "nat"))).code == 0

    async def _gone(self, program: str, table: str) -> bool:
        """Whether the canary is gone. Other failures (a lock, resources) say nothing."""
        return (await self._ask(program, ("-S", _CANARY, "-t", table))).code == 1

    async def _made(self, program: str) -> bool:
        """Makes what is missing; a failure is a finding until it succeeds."""
        trouble = self._trouble.setdefault(program, StandingFinding(self._recorder))
        try:
            for step in steps(ipv6=program == "ip6tables"):
                await self._make(program, step)
            for table in _TABLES:
                await self._make(program, ChainStep(("-N", _CANARY, "-t", table)))
        except NotMade as error:
            trouble.is_(f"the chains of this node cannot be made: {error}")
            return False
        trouble.over()
        return True

    async def _make(self, program: str, step: ChainStep) -> None:
        if step.check is not None and (await self._ask(program, step.check)).code == 0:
            return
        ended = await self._ask(program, step.make)
        if ended.code != 0 and not (step.check is None and ended.code == _EXISTS_ALREADY):
            raise NotMade(f"{program} {' '.join(step.make)}: {ended.problem}: {ended.output.strip()}")

    async def _ask(self, program: str, arguments: tuple[str, ...]) -> Ended:
        command = (program, "-w", "5", *arguments)
        try:
            return await self._threads.run(
                partial(self._program, command),
                on=" ".join((program, *arguments[:2])),
                key=program,
                kind=WaitKind.ADMISSION,
                place=HERE,
            )
        except HostCallStuck as error:
            return Ended(None, "", str(error))
