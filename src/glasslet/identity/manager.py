"""Keeps one kind of certificate valid: requests the first one, replaces each at 70..90 % of its life.

    due? ──▶ new key, signing request ──▶ wait (15 min) ──▶ pair file ──▶ on_new
     ▲                │ failed: again after 2, 4, 8, 16 s, then every 32 s
     └────────────────┘

Source of times and order: behaviours of the Go kubelet, certificates.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from glasslet.concurrency.clock import Clock
from glasslet.concurrency.interruption import Interruptible
from glasslet.concurrency.jitter import jittered
from glasslet.identity.certificate import Subject
from glasslet.identity.keys import KeyOrder, NoKey, SigningInput
from glasslet.identity.pair_store import BadPair, Pair, PairStore
from glasslet.identity.rotation import renewal_moment, satisfies
from glasslet.identity.signer import CertificateSigner, IncompatibleRequest, Order
from glasslet.identity.signing_objects import (
    CLIENT_AUTH,
    CLIENT_SIGNER,
    DIGITAL_SIGNATURE,
    SERVER_AUTH,
    SERVING_SIGNER,
    Issued,
)
from glasslet.kubeapi.errors import APIError, Forbidden, NotFound, Unauthorized

logger = logging.getLogger(__name__)

_WAIT_SIGNED = 15 * 60.0
_FIRST_PAUSES = (2.0, 4.0, 8.0, 16.0)
_PAUSE_JITTER = 0.1
_LAST_PAUSE = 32.0
_LOOK_AGAIN = 10.0
"""Wall time may jump and addresses may change: nothing sleeps longer than this without looking."""
_LOOK_FOR_SUBJECT = 1.0
_BETWEEN = 1.0


class Purpose(Struct, frozen=True, kw_only=True):
    """The purpose of a certificate."""

    name: str
    signer: str
    usages: tuple[str, ...]


CLIENT = Purpose(name="client", signer=CLIENT_SIGNER, usages=(DIGITAL_SIGNATURE, CLIENT_AUTH))
SERVING = Purpose(name="serving", signer=SERVING_SIGNER, usages=(DIGITAL_SIGNATURE, SERVER_AUTH))


class RotationMetrics(Protocol):
    """Counts renewals."""

    def failed(self) -> None:
        """A renewal failed."""

    def replaced(self, age_seconds: float) -> None:
        """A certificate of that age was replaced."""


class NoMetrics:
    """Counts nothing: certificates are not renewed."""

    def failed(self) -> None:
        """Counts nothing."""

    def replaced(self, age_seconds: float) -> None:
        """Counts nothing."""


NO_METRICS = NoMetrics()


class KeyMaker(Protocol):
    """Makes keys and signing requests; raises NoKey."""

    async def __call__(self, order: KeyOrder) -> SigningInput: ...


Signers = Callable[[Pair | None], AbstractAsyncContextManager[CertificateSigner]]
"""A signer for one try, with the credentials that fit the valid pair there is, if any."""


class CertificateManager:
    """Owner of one `PairStore`. `subject()` gives the subject that the certificate needs; None: not known yet."""

    def __init__(
        self,
        *,
        purpose: Purpose,
        store: PairStore,
        subject: Callable[[], Subject | None],
        signers: Signers,
        make_key: KeyMaker,
        metrics: RotationMetrics,
        clock: Clock,
        on_new: Callable[[Pair], None] = lambda pair: None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._purpose = purpose
        self._store = store
        self._subject = subject
        self._signers = signers
        self._make_key = make_key
        self._metrics = metrics
        self._clock = clock
        self._on_new = on_new
        self._draw = draw
        self._pair: Pair | None = None
        self._due: datetime | None = None
        self._asked_for: Subject | None = None
        self._submitted = Interruptible()
        self.server_answers = False
        """True if the API server answered the last try, also with a refusal."""

    def adopt(self, pair: Pair | None, *, renew: bool) -> None:
        """Takes the pair of the start; `renew` replaces it at once."""
        self._pair = pair
        self._due = self._clock.now() if renew or pair is None else self._draw_due(pair)

    def current(self) -> Pair | None:
        """The pair in use; None if there is none or it is expired."""
        if self._pair is None or not self._pair.valid_at(self._clock.now()):
            return None
        return self._pair

    def expiry(self) -> datetime | None:
        """When the pair in use ends; None if there is none, or it did."""
        pair = self.current()
        return pair.certificate.not_after if pair else None

    async def run(self) -> None:
        """Renews until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_subject(), name=f"subject of the {self._purpose.name} certificate")
            while True:
                await self._until_due()
                await self._renew()
                # A signer may date certificates back by more than their life: then the next is due at once.
                await asyncio.sleep(_BETWEEN)

    async def _until_due(self) -> None:
        while True:
            seconds = self._seconds_left()
            if seconds <= 0:
                return
            await asyncio.sleep(min(seconds, _LOOK_AGAIN))

    def _seconds_left(self) -> float:
        """0 when a new certificate is due and can be requested."""
        wanted = self._subject()
        if wanted is None:
            return _LOOK_FOR_SUBJECT
        if self._pair is None or self._due is None:
            return 0.0
        if not satisfies(self._pair.certificate, wanted):
            return 0.0
        return max(0.0, (self._due - self._clock.now()).total_seconds())

    async def _renew(self) -> None:
        """Tries until there is a new certificate."""
        pauses = iter(_FIRST_PAUSES)
        while not await self._try():
            pause = next(pauses, None)
            await asyncio.sleep(_LAST_PAUSE if pause is None else jittered(pause, _PAUSE_JITTER))

    async def _try(self) -> bool:
        """One request from key to pair file; False if it has to be tried again."""
        wanted = self._subject()
        if wanted is None:
            return True
        try:
            signing = await self._make_key(KeyOrder(subject=wanted))
            issued = await self._have_signed(wanted, signing)
            if issued is None:
                return False
            pair = self._store.update(issued.certificate, signing.key, now=self._clock.now())
        except (APIError, NoKey, BadPair, IncompatibleRequest, OSError) as error:
            self._server_said(error)
            self._failed(str(error))
            return False
        self._use(pair)
        return True

    async def _have_signed(self, wanted: Subject, signing: SigningInput) -> Issued | None:
        order = Order(subject=wanted, signer=self._purpose.signer, usages=self._purpose.usages)
        async with self._signers(self.current()) as signer:
            request = await signer.submit(order, signing)
            self._asked_for = wanted
            logger.info("certificate requested", extra={"purpose": self._purpose.name, "request": request.name})
            end = None
            async with self._submitted:
                end = await signer.wait(request, _WAIT_SIGNED)
        if isinstance(end, Issued):
            return end
        self._failed(end.why if end else f"signing request {request.name} is out of date: the node's addresses changed")
        return None

    def _use(self, pair: Pair) -> None:
        old, self._pair = self._pair, pair
        self._due = self._draw_due(pair)
        self.server_answers = True
        if old is not None:
            self._metrics.replaced((self._clock.now() - old.certificate.not_before).total_seconds())
        logger.info(
            "new certificate in use",
            extra={
                "purpose": self._purpose.name,
                "file": pair.certificate_file,
                "expires": pair.certificate.not_after.isoformat(),
                "renewal": self._due.isoformat(),
            },
        )
        self._on_new(pair)

    def _draw_due(self, pair: Pair) -> datetime:
        return renewal_moment(pair.certificate, self._draw())

    def _failed(self, why: str) -> None:
        self._metrics.failed()
        logger.error("certificate not renewed", extra={"purpose": self._purpose.name, "error": why})

    def _server_said(self, error: Exception) -> None:
        """A server that refuses is there; one that is silent or broken may just be away."""
        if isinstance(error, APIError):
            self.server_answers = isinstance(error, Unauthorized | NotFound | Forbidden)

    async def _follow_subject(self) -> None:
        """A request under way for other names than those wanted now is given up."""
        while True:
            await asyncio.sleep(_LOOK_AGAIN)
            wanted = self._subject()
            if wanted is not None and wanted != self._asked_for and not self._is_satisfied(wanted):
                self._submitted.interrupt()

    def _is_satisfied(self, wanted: Subject) -> bool:
        return self._pair is not None and satisfies(self._pair.certificate, wanted)


@asynccontextmanager
async def one_signer(signer: CertificateSigner) -> AsyncIterator[CertificateSigner]:
    """A signer whose client has another owner."""
    yield signer
