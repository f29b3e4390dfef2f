"""Traffic of network interfaces, from `/proc/<pid>/net/dev` of a process in the network namespace that is meant."""

from __future__ import annotations

from msgspec import Struct

from glasslet.host.kernel_text import MOST_DIGITS, contents

_IGNORED = ("lo", "veth", "docker", "nerdctl")
"""Interfaces whose traffic is seen a second time elsewhere, or goes nowhere."""
_FIELDS = 16


class Interface(Struct, frozen=True, kw_only=True):
    """Bytes and packets since the interface was made."""

    name: str
    rx_bytes: int = 0
    rx_packets: int = 0
    rx_errors: int = 0
    rx_dropped: int = 0
    tx_bytes: int = 0
    tx_packets: int = 0
    tx_errors: int = 0
    tx_dropped: int = 0


MOST_INTERFACES = 256
"""Interfaces of one network: a container with CAP_NET_ADMIN can make thousands, and each has eight series."""


def read_interfaces(process: str, *, proc: str = "/proc") -> tuple[Interface, ...]:
    """Interfaces of the network that a process is in; none if it has ended."""
    return interfaces(contents(f"{proc}/{process}/net/dev"))


def interfaces(data: bytes) -> tuple[Interface, ...]:
    """A net/dev file, without loopback and the near ends of containers' links."""
    found: list[Interface] = []
    # Bytes: a container may name its interface with any character but blanks, `/` and `:`, line separators included.
    for line in data.split(b"\n"):
        before, colon, rest = line.partition(b":")
        name = before.strip(b" ").decode("utf-8", "replace")
        if not colon or name.lower().startswith(_IGNORED):
            continue
        if len(found) == MOST_INTERFACES:
            break
        values = rest.split()
        if len(values) < _FIELDS or not all(value.isdigit() and len(value) <= MOST_DIGITS for value in values):
            continue
        rx_bytes, rx_packets, rx_errors, rx_dropped, _, _, _, _, tx_bytes, tx_packets, tx_errors, tx_dropped = map(
            int, values[:12]
        )
        found.append(
            Interface(
                name=name,
                rx_bytes=rx_bytes,
                rx_packets=rx_packets,
                rx_errors=rx_errors,
                rx_dropped=rx_dropped,
                tx_bytes=tx_bytes,
                tx_packets=tx_packets,
                tx_errors=tx_errors,
                tx_dropped=tx_dropped,
            )
        )
    return tuple(found)
