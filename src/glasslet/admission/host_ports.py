"""A host port belongs to one pod per address and protocol."""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.admission.candidate import Candidate, predicate_failed
from glasslet.api.pod import Pod
from glasslet.api.restarts import is_sidecar
from glasslet.exchange.admission import Rejected

_ANY = "0.0.0.0"

Port = tuple[str, str, int]
"""(address, protocol, number)."""


def host_ports_rule(candidate: Candidate) -> Rejected | None:
    """Refuses a pod whose host port another pod has."""
    wanted = set(host_ports(candidate.pod))
    if not wanted:
        return None
    taken = {port for other in candidate.others for port in host_ports(other)}
    if not any(clashes(one, other) for one in wanted for other in taken):
        return None
    return predicate_failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")


def host_ports(pod: Pod) -> Iterator[Port]:
    """Host ports of regular containers and sidecars."""
    sidecars = (c for c in pod.spec.init_containers if is_sidecar(c))
    for container in (*sidecars, *pod.spec.containers):
        for port in container.ports:
            if port.host_port > 0:
                yield (port.host_ip or _ANY, port.protocol or "TCP", port.host_port)


def clashes(one: Port, other: Port) -> bool:
    """The wildcard address clashes with every address."""
    return one[1:] == other[1:] and (one[0] == other[0] or _ANY in (one[0], other[0]))
