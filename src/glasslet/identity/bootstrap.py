"""A first client certificate, got with bootstrap credentials before anything else starts (rotation switched off).

With rotation the certificate manager does the same in the background; see `client_identity`.
Source of names, files and times: behaviours of the Go kubelet, certificates.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import os
from collections.abc import Sequence
from typing import Any

from glasslet.concurrency.clock import Clock
from glasslet.concurrency.jitter import jittered
from glasslet.host.files.small_files import write_atomically
from glasslet.identity.certificate import Subject, key_block
from glasslet.identity.keys import KeyOrder, NoKey, SigningInput
from glasslet.identity.manager import CLIENT, KeyMaker
from glasslet.identity.pair_store import BadPair, Pair, PairStore
from glasslet.identity.rotation import node_subject
from glasslet.identity.signer import CertificateSigner, IncompatibleRequest, Order
from glasslet.identity.signing_objects import KEY_ENCIPHERMENT, NotIssued
from glasslet.kubeapi.errors import APIError, Unavailable
from glasslet.kubeapi.protocols import APIClient
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

_SERVER_WAIT = 60.0
_SERVER_ASK = 1.0
_SERVER_PAUSE = 2.0
_SERVER_JITTER = 0.2
_SIGNED_WAIT = 3600.0
_KEY_FILE = "kubelet-client.key.tmp"


class BootstrapFailed(Exception):
    """No certificate was issued; the text says why."""


class Bootstrap:
    """Gets one client certificate. `client` has the bootstrap credentials."""

    def __init__(
        self,
        *,
        client: APIClient,
        store: PairStore,
        make_key: KeyMaker,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._store = store
        self._make_key = make_key
        self._recorder = recorder
        self._clock = clock
        self._signer = CertificateSigner(client=client, recorder=recorder, clock=clock)

    async def run(self, node: str) -> Pair:
        """The new pair, in the store. Raises BootstrapFailed, APIError, OSError."""
        key_file = os.path.join(self._store.folder, _KEY_FILE)
        subject = node_subject(node)
        signing = await self._signing_input(subject, key_file)
        await self._wait_for_server()
        usages = (*CLIENT.usages, KEY_ENCIPHERMENT) if signing.is_rsa else CLIENT.usages
        name = request_name(signing.public_key, subject, usages)
        order = Order(subject=subject, signer=CLIENT.signer, usages=usages, name=name)
        try:
            request = await self._signer.submit(order, signing)
        except IncompatibleRequest as error:
            raise BootstrapFailed(str(error)) from None
        logger.info("client certificate requested with bootstrap credentials", extra={"request": name})
        end = await self._signer.wait(request, _SIGNED_WAIT)
        if isinstance(end, NotIssued):
            raise BootstrapFailed(end.why)
        try:
            pair = self._store.update(end.certificate, signing.key, now=self._clock.now())
        except BadPair as error:
            raise BootstrapFailed(str(error)) from None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(key_file)
        return pair

    async def _signing_input(self, subject: Subject, key_file: str) -> SigningInput:
        """With the key of the present pair, else that of an earlier try, else a new one, kept for the next try: the
        same key leads to the same request, so that a restart goes on waiting for the same approval."""
        for path in (self._store.current_path, key_file):
            if key := _key_in(path):
                # Not a key that can be used: the next place, or a new one.
                with contextlib.suppress(NoKey):
                    return await self._make_key(KeyOrder(subject=subject, key=key))
        try:
            signing = await self._make_key(KeyOrder(subject=subject))
        except NoKey as error:
            raise BootstrapFailed(str(error)) from None
        os.makedirs(os.path.dirname(key_file), mode=0o755, exist_ok=True)
        write_atomically(key_file, signing.key, mode=0o600)
        return signing

    async def _wait_for_server(self) -> None:
        """Waits for any answer of the server, a minute at most: then the request is tried anyway."""
        deadline = self._clock.monotonic() + _SERVER_WAIT
        with self._recorder.wait(WaitKind.API_CALL, on="first answer of the API server"):
            while self._clock.monotonic() < deadline:
                if await self._server_answers():
                    return
                await asyncio.sleep(jittered(_SERVER_PAUSE, _SERVER_JITTER))

    async def _server_answers(self) -> bool:
        try:
            await self._client.get("/version", dict[str, Any], timeout=_SERVER_ASK)
        except Unavailable as error:
            logger.info("API server does not answer yet", extra={"error": str(error)})
            return False
        except APIError:
            # A refusal is an answer, too: rights do not matter here.
            pass
        return True


def request_name(public_key: bytes, subject: Subject, usages: Sequence[str]) -> str:
    """The name of a bootstrap request, the same for the same key and wishes: `node-csr-` and a digest (SHA-512/256) of
    public key, common name, organisations and usages, each in base64 and ended by a bar."""
    digest = hashlib.new("sha512_256")
    for part in (public_key, *(text.encode() for text in (subject.common_name, *subject.organizations, *usages))):
        digest.update(_base64url(part) + b"|")
    return f"node-csr-{_base64url(digest.digest()).decode()}"


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _key_in(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return key_block(file.read())
    except OSError:
        return b""
