"""Traffic of network interfaces, from `/proc/<pid>/net/dev` of a process in the network namespace that is meant."""

from __future__ import annotations

from msgspec import Struct

from glasslet.stats.kernel_text import contents

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


def read_interfaces(process: str, *, proc: str = "/proc") -> tuple[Interface, ...]:
    """Interfaces of the network that a process is in; none if it has ended."""
    return interfaces(contents(f"{proc}/{process}/net/dev"))


def interfaces(data: bytes) -> tuple[Interface, ...]:
    """A net/dev file, without loopback and the near ends of containers' links."""
    found = []
    for line in data.decode("utf-8", "replace").splitlines():
        name, colon, rest = line.partition(":")
        name, values = name.strip(), rest.split()
        if not colon or len(values) < _FIELDS or name.lower().startswith(_IGNORED):
            continue
        numbers = [int(value) if value.isdigit() else 0 for value in values]
        found.append(
            Interface(
                name=name,
                rx_bytes=numbers[0],
                rx_packets=numbers[1],
                rx_errors=numbers[2],
                rx_dropped=numbers[3],
                tx_bytes=numbers[8],
                tx_packets=numbers[9],
                tx_errors=numbers[10],
                tx_dropped=numbers[11],
            )
        )
    return tuple(found)
