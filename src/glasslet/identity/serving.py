"""The certificate of the HTTPS port, signed by the cluster (serverTLSBootstrap).

Assembly: `serving = ServingIdentity(settings=..., signer=..., ...)`; the server starts with `serving.files()`, which
may not be there yet, and subscribes to new pairs; `serving.run` is a service.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from glasslet.api.node import NodeAddress
from glasslet.concurrency.clock import Clock
from glasslet.identity.certificate import Subject
from glasslet.identity.keys import make_signing_input
from glasslet.identity.manager import SERVING, CertificateManager, KeyMaker, RotationMetrics, one_signer
from glasslet.identity.pair_store import BadPair, Pair, PairStore
from glasslet.identity.rotation import serving_subject
from glasslet.identity.signer import CertificateSigner

logger = logging.getLogger(__name__)


class ServingSettings(Struct, frozen=True, kw_only=True):
    """Flag --cert-dir, fields tlsCertFile and tlsPrivateKeyFile; `names_alone`: feature gate AllowDNSOnlyNodeCSR."""

    node: str
    cert_dir: str
    certificate_file: str = ""
    key_file: str = ""
    names_alone: bool = False


class ServingIdentity:
    """Owner of this node's serving certificate. `addresses`: the node's own, as it reports them."""

    def __init__(
        self,
        *,
        settings: ServingSettings,
        signer: CertificateSigner,
        addresses: Callable[[], Sequence[NodeAddress]],
        metrics: RotationMetrics,
        clock: Clock,
        make_key: KeyMaker = make_signing_input,
    ) -> None:
        self._settings = settings
        self._addresses = addresses
        self._subscribers: list[Callable[[Pair], None]] = []
        self._store = PairStore(
            folder=settings.cert_dir, prefix="kubelet-server", others=(settings.certificate_file, settings.key_file)
        )
        self._manager = CertificateManager(
            purpose=SERVING,
            store=self._store,
            subject=self._subject,
            signers=lambda _: one_signer(signer),
            make_key=make_key,
            metrics=metrics,
            clock=clock,
            on_new=self._new_pair,
        )
        pair = self._usable_pair(clock.now())
        self._manager.adopt(pair, renew=pair is None)

    def files(self) -> tuple[str, str]:
        """Certificate and key to serve with; where they will be, if there are none."""
        pair = self._manager.current()
        return (pair.certificate_file, pair.key_file) if pair else (self._store.current_path, self._store.current_path)

    def subscribe(self, callback: Callable[[Pair], None]) -> None:
        """Calls `callback` with each new pair."""
        self._subscribers.append(callback)

    def expiry(self) -> datetime | None:
        """When the certificate in use ends; None if there is none."""
        return self._manager.expiry()

    async def run(self) -> None:
        """Keeps the certificate valid."""
        await self._manager.run()

    def _new_pair(self, pair: Pair) -> None:
        for callback in self._subscribers:
            callback(pair)

    def _subject(self) -> Subject | None:
        return serving_subject(self._settings.node, self._addresses(), names_alone=self._settings.names_alone)

    def _usable_pair(self, now: datetime) -> Pair | None:
        try:
            pair = self._store.current()
        except (BadPair, OSError) as error:
            logger.error("serving certificate cannot be used, a new one is requested", extra={"error": str(error)})
            return None
        return pair if pair is not None and pair.valid_at(now) else None
