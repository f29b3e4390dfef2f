"""The three kinds of probes, and how a probe is named in waits, records and answers."""

from __future__ import annotations

from enum import StrEnum

from glasslet.api.container import Container
from glasslet.api.lifecycle import Probe

COMMAND_SHOWN = 60
"""Characters of an exec probe's command that names show."""


class ProbeKind(StrEnum):
    """As events and metrics spell it."""

    STARTUP = "Startup"
    READINESS = "Readiness"
    LIVENESS = "Liveness"

    def of(self, container: Container) -> Probe | None:
        """The container's probe of this kind."""
        match self:
            case ProbeKind.STARTUP:
                return container.startup_probe
            case ProbeKind.READINESS:
                return container.readiness_probe
            case ProbeKind.LIVENESS:
                return container.liveness_probe


def in_words(kind: ProbeKind, probe: Probe) -> str:
    """The probe's name: `readiness http :8080/ready`."""
    return f"{kind.value.lower()} {target_in_words(probe)}"


def target_in_words(probe: Probe) -> str:
    """The handler and its target: `http :8080/ready`."""
    if probe.http_get is not None:
        action = probe.http_get
        # Without the query: there may be a token in it.
        path = action.path.partition("?")[0] or "/"
        return f"{(action.scheme or 'http').lower()} {action.host}:{action.port}{path}"
    if probe.tcp_socket is not None:
        return f"tcp {probe.tcp_socket.host}:{probe.tcp_socket.port}"
    if probe.grpc is not None:
        service = f" {probe.grpc.service}" if probe.grpc.service else ""
        return f"grpc :{probe.grpc.port}{service}"
    if probe.exec is not None:
        command = " ".join(" ".join(probe.exec.command).split())
        return f"exec {command if len(command) <= COMMAND_SHOWN else command[: COMMAND_SHOWN - 1] + '…'}"
    return "without a handler"
