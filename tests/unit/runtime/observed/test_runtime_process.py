"""Which process the runtime is, and when it was gone: processes and clock are a table."""

from __future__ import annotations

from datetime import datetime, timedelta

from glasslet.host.processes import HostProcess
from glasslet.runtime.observed.runtime_process import RuntimeProcess
from tests.builders.record import START

SOCKET = "/run/c.sock"


class Table:
    """A machine: `owner` listens on the runtime's socket."""

    def __init__(self) -> None:
        self.there = {7: HostProcess(pid=7, parent=1, name="containerd", began=0.0, ticks=100, state="S")}
        self.owner = 7
        self.at = START

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def followed(self, endpoint: str = f"unix://{SOCKET}") -> RuntimeProcess:
        return RuntimeProcess(
            endpoint=endpoint,
            clock=self,
            owner=lambda path: self.owner if path == SOCKET else 0,
            process=self.there.get,
        )


def test_the_listener_of_the_socket_is_the_runtime() -> None:
    view = Table().followed().look()
    assert view is not None
    assert (str(view), view.state, view.gone_since) == ("containerd (pid 7)", "S", None)


def test_a_process_that_ended_is_gone_since_it_was_first_missed() -> None:
    table = Table()
    process = table.followed()
    process.look()
    table.there.clear()
    table.owner = 0
    missed = table.at = START + timedelta(seconds=5)
    process.look()
    table.at += timedelta(minutes=1)
    view = process.look()
    assert view is not None
    assert (str(view), view.gone_since) == ("containerd (pid 7)", missed)


def test_a_process_that_ended_and_was_not_reaped_is_gone() -> None:
    table = Table()
    process = table.followed()
    process.look()
    table.there[7] = HostProcess(pid=7, parent=1, name="containerd", began=0.0, ticks=100, state="Z")
    view = process.look()
    assert view is not None
    assert view.gone_since == START


def test_another_process_of_the_same_number_is_not_the_runtime() -> None:
    table = Table()
    process = table.followed()
    process.look()
    table.there[7] = HostProcess(pid=7, parent=1, name="cron", began=9.0, ticks=900, state="S")
    table.owner = 0
    view = process.look()
    assert view is not None
    assert (view.name, view.gone_since) == ("containerd", START)


def test_a_runtime_that_was_started_again_is_the_new_process() -> None:
    table = Table()
    process = table.followed()
    process.look()
    del table.there[7]
    table.there[9] = HostProcess(pid=9, parent=1, name="containerd", began=9.0, ticks=900, state="S")
    table.owner = 9
    view = process.look()
    assert view is not None
    assert (view.pid, view.gone_since) == (9, None)


def test_init_and_what_cannot_be_seen_are_not_the_runtime() -> None:
    table = Table()
    table.there[1] = HostProcess(pid=1, parent=0, name="systemd", began=0.0, state="S")
    for owner in (0, 1, 99):
        table.owner = owner
        assert table.followed().look() is None
    assert table.followed("tcp://127.0.0.1:1").look() is None
