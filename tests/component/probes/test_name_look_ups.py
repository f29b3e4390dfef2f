"""Look-ups of names for one pod hold up no other pod."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.host.threads import LANES, HostThreads, Lane
from glasslet.probes.names import NameResolver
from glasslet.record.recorder import current_scope, working_for
from tests.fakes.waits import WaitLog

MALLORY, ALICE = PodRef("default", "mallory", PodUID("uid-m")), PodRef("default", "alice", PodUID("uid-a"))


class Names:
    """A name server that answers one pod, and hangs for all look-ups of the other."""

    def __init__(self) -> None:
        self.hanging = 0
        self.go_on = threading.Event()

    def look_up(self, host: str, *args: object, **options: object) -> list[object]:
        if threading.current_thread().name.endswith(MALLORY.uid):
            self.hanging += 1
            self.go_on.wait(30)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 0))]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names.look_up)
    return names


async def look_up(resolver: NameResolver, pod: PodRef, host: str) -> tuple[str, ...]:
    with working_for(pod):
        assert current_scope().pod == pod
        return await resolver(host)


@pytest.mark.parametrize("same", [True, False])
async def test_one_pod_has_a_few_look_ups_at_once_and_others_are_answered(names: Names, same: bool) -> None:
    resolver = NameResolver(threads=HostThreads(recorder=WaitLog(), slow_after=0.05))
    hosts = ["api.example" if same else f"host-{number}.example" for number in range(100)]
    crowd = [asyncio.create_task(look_up(resolver, MALLORY, host)) for host in hosts]
    await asyncio.sleep(0.2)
    try:
        assert 1 <= names.hanging <= LANES[Lane.LOOK_UP].pod
        async with asyncio.timeout(5):
            assert await look_up(resolver, ALICE, "api.example") == ("192.0.2.7",)
    finally:
        names.go_on.set()
        for task in crowd:
            task.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)
