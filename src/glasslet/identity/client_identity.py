"""The node's identity at the API server: the kubeconfig in use, the source of its client certificate, the consequences
of having none.

    --kubeconfig usable?  yes                         ─▶ it counts
                          no, --bootstrap-kubeconfig  ─▶ a new one is written; it points to the pair of --cert-dir
                          no, nor that                ─▶ it is used nevertheless; a finding says what to do
    rotateCertificates    on   ─▶ the pair of --cert-dir is requested in the background, used, and renewed
                          off  ─▶ with bootstrap credentials: requested once, before anything else

Assembly: `config = identity.prepare()` is the Kubeconfig for all API clients; `await identity.obtain()` before they are
used; `identity.run` is a service; `await identity.watch()` ends the agent when it must.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Protocol

import msgspec
from msgspec import Struct

from glasslet.concurrency.clock import Clock
from glasslet.identity.bootstrap import Bootstrap
from glasslet.identity.keys import make_signing_input
from glasslet.identity.kubeconfig_file import (
    KubeconfigCertificate,
    client_certificate,
    resulting_config,
    write_kubeconfig,
)
from glasslet.identity.manager import CLIENT, CertificateManager, KeyMaker, RotationMetrics
from glasslet.identity.pair_store import BadPair, Pair, PairStore
from glasslet.identity.recovery import NodeFiles, recovery_steps
from glasslet.identity.rotation import node_subject
from glasslet.identity.signer import CertificateSigner
from glasslet.kubeapi.kubeconfig import Kubeconfig, load_kubeconfig
from glasslet.kubeapi.protocols import APIClient
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding

logger = logging.getLogger(__name__)

_LOOK_PERIOD = 10.0
_EXIT_AFTER = 300.0


class ClientCertificateLost(Exception):
    """No valid client certificate for five minutes although the server answers: a restart may find new credentials."""


class ClosableClient(APIClient, Protocol):
    """An API client with connections of its own."""

    async def close(self) -> None: ...


class IdentitySettings(Struct, frozen=True, kw_only=True):
    """Flags --kubeconfig, --bootstrap-kubeconfig, --cert-dir, and the field rotateCertificates."""

    node: str
    kubeconfig: str
    bootstrap_kubeconfig: str = ""
    cert_dir: str
    rotate: bool = False


class ClientIdentity:
    """Owner of this node's client certificate."""

    def __init__(
        self,
        *,
        settings: IdentitySettings,
        connect: Callable[[Kubeconfig], ClosableClient],
        metrics: RotationMetrics,
        recorder: Recorder,
        clock: Clock,
        make_key: KeyMaker = make_signing_input,
    ) -> None:
        self._settings = settings
        self._connect = connect
        self._metrics = metrics
        self._recorder = recorder
        self._clock = clock
        self._make_key = make_key
        self._store = PairStore(folder=settings.cert_dir, prefix="kubelet-client")
        self._manager: CertificateManager | None = None
        self._bootstrap: Kubeconfig | None = None
        self._config: Kubeconfig | None = None
        self._told = ""
        self._trouble = StandingFinding(recorder)
        self._unusable = StandingFinding(recorder)

    def prepare(self) -> Kubeconfig:
        """The kubeconfig for this agent's API clients. Raises KubeconfigError, OSError."""
        settings = self._settings
        first = self._bootstrap = self._bootstrap_config()
        if first is None:
            config = load_kubeconfig(settings.kubeconfig)
        else:
            config = resulting_config(first, settings.kubeconfig, self._store.current_path)
        if settings.rotate:
            if first is not None:
                write_kubeconfig(config)
            config = self._prepare_rotation(config, first or config)
        if first is None or settings.rotate:
            self._tell_if_expired()
        self._config = config
        return config

    async def obtain(self) -> None:
        """Waits for the first certificate where rotation does not get it in the background, then writes the kubeconfig.

        Raises BootstrapFailed, APIError, OSError."""
        if self._bootstrap is None or self._manager is not None or self._config is None:
            return
        client = self._connect(self._bootstrap)
        try:
            bootstrap = Bootstrap(
                client=client,
                store=self._store,
                make_key=self._make_key,
                recorder=self._recorder,
                clock=self._clock,
            )
            await bootstrap.run(self._settings.node)
        finally:
            await client.close()
        write_kubeconfig(self._config)

    def expiry(self) -> datetime | None:
        """When the rotated certificate in use ends; None if there is none."""
        return self._manager.expiry() if self._manager else None

    def expired_at(self) -> datetime | None:
        """When the certificate in use ended; None while there is a good one, or none at all. Raises OSError."""
        return self._expired(self._state())

    async def run(self) -> None:
        """Keeps the certificate valid, if that is wanted; else looks at it from time to time."""
        if self._manager is not None:
            await self._manager.run()
        while True:
            await asyncio.sleep(_LOOK_PERIOD)
            self._tell_if_expired()

    async def watch(self) -> None:
        """Never returns. Raises ClientCertificateLost when the agent cannot go on under its name."""
        seen = self._clock.monotonic()
        while True:
            await asyncio.sleep(_LOOK_PERIOD)
            manager = self._manager
            if manager is None or manager.current() is not None:
                seen = self._clock.monotonic()
                continue
            self._tell_if_expired()
            if self._clock.monotonic() - seen > _EXIT_AFTER and manager.server_answers:
                raise ClientCertificateLost(self._recovery(_expiry_of(self._store)))

    def _bootstrap_config(self) -> Kubeconfig | None:
        """The bootstrap credentials, if they are there and needed."""
        settings = self._settings
        if not settings.bootstrap_kubeconfig:
            return None
        there = client_certificate(settings.kubeconfig, self._clock.now())
        if not there.problem:
            logger.info("kubeconfig is valid, no bootstrap necessary", extra={"file": settings.kubeconfig})
            return None
        logger.info("bootstrap credentials are used", extra={"why": there.problem})
        self._recorder.decided("bootstrap", why=there.problem, credentials=settings.bootstrap_kubeconfig)
        return load_kubeconfig(settings.bootstrap_kubeconfig)

    def _prepare_rotation(self, config: Kubeconfig, first: Kubeconfig) -> Kubeconfig:
        """The kubeconfig with which API clients follow the rotated pair. `first`: credentials for the first request."""
        self._store = PairStore(
            folder=self._settings.cert_dir,
            prefix="kubelet-client",
            others=(config.certificate_file, config.key_file),
        )
        rotated = msgspec.structs.replace(config, pair_file=self._store.current_path)

        @asynccontextmanager
        async def signers(valid: Pair | None) -> AsyncIterator[CertificateSigner]:
            client = self._connect(rotated if valid is not None else first)
            try:
                yield CertificateSigner(client=client, recorder=self._recorder, clock=self._clock)
            finally:
                await client.close()

        subject = node_subject(self._settings.node)
        self._manager = CertificateManager(
            purpose=CLIENT,
            store=self._store,
            subject=lambda: subject,
            signers=signers,
            make_key=self._make_key,
            metrics=self._metrics,
            clock=self._clock,
            on_new=lambda _pair: self._unusable.over(),
        )
        pair = self._usable_pair()
        if pair is not None:
            self._manager.adopt(pair, renew=False)
        else:
            # kubeadm gives its first node a kubeconfig with an administrator's certificate inside: it only serves to
            # get the node's own.
            self._manager.adopt(self._import(config), renew=True)
        return rotated

    def _usable_pair(self) -> Pair | None:
        try:
            pair = self._store.current()
        except (BadPair, OSError) as error:
            logger.error("client certificate cannot be used, a new one is requested", extra={"error": str(error)})
            self._unusable.is_(f"{error}; a new certificate is requested")
            return None
        return pair if pair is not None and pair.valid_at(self._clock.now()) else None

    def _import(self, config: Kubeconfig) -> Pair | None:
        """Puts a certificate that stands in the kubeconfig itself into the store."""
        if not (config.certificate_data and config.key_data):
            return None
        try:
            return self._store.update(config.certificate_data, config.key_data, now=self._clock.now())
        except (BadPair, OSError) as error:
            logger.error("certificate of the kubeconfig cannot be kept", extra={"error": str(error)})
            return None

    def _tell_if_expired(self) -> None:
        """Says once what has to be done for this node when its certificate is no longer good."""
        state = self._state()
        expired = self._expired(state)
        if expired is None:
            self._told = ""
            self._trouble.over()
            return
        if state.problem == self._told:
            return
        self._told = state.problem
        text = self._recovery(expired)
        logger.error("client certificate expired", extra={"expired": f"{expired:%FT%TZ}", "recovery": text})
        self._trouble.is_(text)

    def _state(self) -> KubeconfigCertificate:
        if self._manager is None:
            return client_certificate(self._settings.kubeconfig, self._clock.now())
        current = self._manager.current()
        return KubeconfigCertificate(expires=current.certificate.not_after) if current else self._without_pair()

    def _expired(self, state: KubeconfigCertificate) -> datetime | None:
        return state.expires if state.expires is not None and state.expires < self._clock.now() else None

    def _without_pair(self) -> KubeconfigCertificate:
        expired = _expiry_of(self._store)
        return KubeconfigCertificate(expires=expired, problem=f"expired at {expired}")

    def _recovery(self, expired: datetime | None) -> str:
        place = NodeFiles(
            node=self._settings.node,
            kubeconfig=self._settings.kubeconfig,
            bootstrap_kubeconfig=self._settings.bootstrap_kubeconfig,
            pair_file=self._store.current_path,
        )
        return recovery_steps(place, expired)


def _expiry_of(store: PairStore) -> datetime | None:
    try:
        pair = store.current()
    except (BadPair, OSError):
        # The problem of the pair is reported where it is used; here it only has no expiry.
        return None
    return pair.certificate.not_after if pair else None
