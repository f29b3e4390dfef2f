"""Keys and signing requests, made by a short-lived process."""

from __future__ import annotations

import asyncio
import sys

import msgspec
from msgspec import Struct

from glasslet.concurrency.child_process import end
from glasslet.identity.certificate import Subject

_SECONDS = 60.0


class NoKey(Exception):
    """No key or request could be made; the text says why."""


class KeyOrder(Struct, frozen=True, kw_only=True):
    """What to make: a request for `subject`, with `key` (PEM) or, when that is empty, with a new one."""

    subject: Subject
    key: bytes = b""

    def __repr__(self) -> str:
        return f"KeyOrder({self.subject!r})"


class SigningInput(Struct, frozen=True, kw_only=True):
    """A private key and a signing request for it (PEM), and the public key (DER, SubjectPublicKeyInfo)."""

    key: bytes
    public_key: bytes
    request: bytes
    is_rsa: bool

    def __repr__(self) -> str:
        return f"SigningInput(is_rsa={self.is_rsa})"


async def make_signing_input(order: KeyOrder) -> SigningInput:
    """Raises NoKey."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "glasslet.identity.key_program"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            answer, said = await process.communicate(msgspec.json.encode(order))
    except TimeoutError:
        raise NoKey(f"no key and signing request in {_SECONDS:.0f} s") from None
    finally:
        if process.returncode is None:
            await end(process)
    if process.returncode != 0:
        last = said.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise NoKey(f"no signing request could be made: {last[0] if last else 'no reason given'}")
    return msgspec.json.decode(answer, type=SigningInput)
