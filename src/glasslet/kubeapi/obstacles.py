"""What kept a request from its answer, by kind: read from the types and numbers of errors, never from their texts."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from enum import StrEnum
from typing import Final

import aiohttp
from msgspec import Struct


class ObstacleKind(StrEnum):
    """Kinds of obstacles. The address is that of the server, or of the proxy before it."""

    UNKNOWN_HOST = "unknown host"
    NAME_SERVICE = "name service"
    """The name could not be looked up: the name servers do not answer."""
    REFUSED = "refused"
    NO_ROUTE = "no route"
    TIMEOUT = "timeout"
    CERTIFICATE = "certificate"
    """The server's certificate is not accepted."""
    TLS = "TLS"
    CLOSED = "closed"
    """The connection ended before the answer."""


class Obstacle(Struct, frozen=True):
    """`address`: HOST:PORT, "" if unknown; `detail`: the library's words, "" if the kind says all."""

    kind: ObstacleKind
    address: str = ""
    detail: str = ""


_NO_SUCH_NAME: Final = (socket.EAI_NONAME, socket.EAI_NODATA)
_REFUSED: Final = (errno.ECONNREFUSED,)
_CLOSED: Final = (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED)


def obstacle_of(error: BaseException) -> Obstacle | None:
    """The obstacle that an error of aiohttp or of the operating system stands for, None if it is none of them."""
    address = _address(error.host, error.port) if isinstance(error, aiohttp.ClientConnectorError) else ""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate(error.certificate_error, _address(error.host, error.port))
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _certificate(cause, address)
    if isinstance(cause, socket.gaierror):
        kind = ObstacleKind.UNKNOWN_HOST if cause.errno in _NO_SUCH_NAME else ObstacleKind.NAME_SERVICE
        return Obstacle(kind, address, cause.strerror or "")
    if isinstance(cause, ssl.SSLError):
        return Obstacle(ObstacleKind.TLS, address, (cause.reason or str(cause)).replace("_", " ").lower())
    if isinstance(cause, TimeoutError):
        return Obstacle(ObstacleKind.TIMEOUT, address)
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        return Obstacle(ObstacleKind.CLOSED, address)
    return _of_number(cause, address) if isinstance(cause, OSError) else None


def _address(host: str, port: int | None) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _of_number(error: OSError, address: str) -> Obstacle | None:
    if error.errno is None:
        return None
    if error.errno in _REFUSED:
        return Obstacle(ObstacleKind.REFUSED, address)
    if error.errno in _CLOSED:
        return Obstacle(ObstacleKind.CLOSED, address)
    return Obstacle(ObstacleKind.NO_ROUTE, address, os.strerror(error.errno).lower())


def _certificate(error: Exception, address: str) -> Obstacle:
    words = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else str(error)
    return Obstacle(ObstacleKind.CERTIFICATE, address, words.rstrip("."))
