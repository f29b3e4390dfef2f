"""Stop signals: the API's names (`SIGRTMIN+1`) and the protocol's numbers."""

from __future__ import annotations

from glasslet.runtime.cri._generated import container_pb2


def signal_number(name: str) -> container_pb2.Signal.ValueType:
    """The protocol's number; "" is the runtime's default. An unknown name is a ValueError."""
    if not name:
        return container_pb2.Signal.RUNTIME_DEFAULT
    wire = name.replace("+", "PLUS").replace("-", "MINUS")
    try:
        return container_pb2.Signal.Value(wire)
    except ValueError:
        names = container_pb2.Signal.DESCRIPTOR.values_by_name
        known = ", ".join(n for n in names if n.startswith("SIG") and not n.startswith("SIGRT"))
        raise ValueError(f'stop signal: invalid value "{name}": allowed: {known}, SIGRTMIN+n, SIGRTMAX-n') from None


def signal_name(number: int) -> str:
    """The API's name; "" for the runtime's default and for numbers that this version of the protocol does not have."""
    if number == container_pb2.Signal.RUNTIME_DEFAULT or number not in container_pb2.Signal.values():
        return ""
    wire = container_pb2.Signal.Name(container_pb2.Signal.ValueType(number))
    return wire.replace("PLUS", "+").replace("MINUS", "-")
