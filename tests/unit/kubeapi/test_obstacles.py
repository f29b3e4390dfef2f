"""What kept a request from its answer, read from the types and numbers of errors."""

from __future__ import annotations

import errno
import socket
import ssl

import aiohttp
import pytest

from glasslet.kubeapi.obstacles import Obstacle, ObstacleKind, obstacle_of


def untrusted() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED]")
    error.verify_message = "certificate has expired"
    return error


@pytest.mark.parametrize(
    ("error", "obstacle"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "no"), Obstacle(ObstacleKind.REFUSED)),
        (ConnectionResetError(errno.ECONNRESET, "no"), Obstacle(ObstacleKind.CLOSED)),
        (OSError(errno.EHOSTUNREACH, "no"), Obstacle(ObstacleKind.NO_ROUTE, "", "no route to host")),
        (TimeoutError(), Obstacle(ObstacleKind.TIMEOUT)),
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            Obstacle(ObstacleKind.UNKNOWN_HOST, "", "Name or service not known"),
        ),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), Obstacle(ObstacleKind.NAME_SERVICE, "", "try again")),
        (untrusted(), Obstacle(ObstacleKind.CERTIFICATE, "", "certificate has expired")),
        (aiohttp.ServerDisconnectedError(), Obstacle(ObstacleKind.CLOSED)),
        (ValueError("something else"), None),
    ],
)
def test_an_error_stands_for_one_obstacle(error: Exception, obstacle: Obstacle | None) -> None:
    assert obstacle_of(error) == obstacle
