"""One bounded HTTP request for manifests."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from urllib.parse import urlsplit

from msgspec import Struct

from glasslet.sources.manifest import MAX_BYTES

TIMEOUT_SECONDS = 10.0


class FetchFailed(Exception):
    """The request failed. The text says why, without headers or passwords."""


class Answer(Struct, frozen=True):
    """The server's answer. `body` is at most MAX_BYTES long."""

    status: int
    reason: str
    body: bytes


async def fetch(url: str, headers: Mapping[str, Sequence[str]]) -> Answer:
    """GETs the URL within ten seconds, following redirects and the proxy of the environment. Raises FetchFailed."""
    # aiohttp costs 15 MB; most nodes have no manifest URL.
    import aiohttp
    from multidict import CIMultiDict

    sent = CIMultiDict([(name, value) for name, values in headers.items() for value in values])
    try:
        async with (
            aiohttp.ClientSession(trust_env=True, timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)) as session,
            session.get(url, headers=sent, ssl=_trust()) as answer,
        ):
            body = bytearray()
            async for chunk in answer.content.iter_chunked(64 * 1024):
                body += chunk
                if len(body) > MAX_BYTES:
                    raise FetchFailed(f"the answer is larger than {MAX_BYTES} bytes")
            return Answer(answer.status, answer.reason or "", bytes(body))
    except TimeoutError:
        raise FetchFailed(f"no complete answer within {TIMEOUT_SECONDS:.0f} s") from None
    except (aiohttp.ClientError, ValueError, OSError) as error:
        raise FetchFailed(_reason(error)) from None


@cache
def _trust() -> ssl.SSLContext:
    """The machine's certificate authorities, read once: aiohttp is not left to read them, see `glasslet.imports`."""
    return ssl.create_default_context()


def without_password(url: str) -> str:
    """The URL as it may be shown: without user, password, query and fragment, which may be secrets."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "the manifest URL"
    return f"{parts.scheme}://{host}{parts.path}" if host else "the manifest URL"


def _reason(error: Exception) -> str:
    """The operating system's words if there are any, else the kind of error: texts of libraries may repeat the URL."""
    for cause in (error, getattr(error, "os_error", None)):
        if isinstance(cause, OSError) and cause.strerror:
            return f"no connection: {cause.strerror}"
    return f"the request failed: {type(error).__name__}"
