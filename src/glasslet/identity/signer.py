"""Requests certificates from the API server: create a signing request, wait until it is approved and signed."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime

from msgspec import Struct

from glasslet.api.meta import ObjectMeta
from glasslet.concurrency.clock import Clock
from glasslet.identity.certificate import BadCertificate, Subject, read_certificates, read_request
from glasslet.identity.keys import SigningInput
from glasslet.identity.recovery import waiting_for_approval
from glasslet.identity.signing_objects import (
    CertificateSigningRequest,
    CertificateSigningRequestSpec,
    Issued,
    NotIssued,
    outcome,
)
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import AlreadyExists, APIError, Gone
from glasslet.kubeapi.protocols import APIClient, WatchKind
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

_TRY_AGAIN = 1.0
_PATIENCE = 10.0
"""Approval by a controller takes less: after this a finding says what to do."""


class Order(Struct, frozen=True, kw_only=True):
    """A certificate to request. `name` "" lets the server choose one (`csr-...`)."""

    subject: Subject
    signer: str
    usages: tuple[str, ...]
    name: str = ""


class Submitted(Struct, frozen=True, kw_only=True):
    """A request that the server has."""

    name: str
    uid: str
    signer: str


class IncompatibleRequest(Exception):
    """There is a request of that name, and it is not for this key and subject."""


class CertificateSigner:
    """One API client's view of signing requests."""

    def __init__(self, *, client: APIClient, recorder: Recorder, clock: Clock) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock

    async def submit(self, order: Order, signing: SigningInput) -> Submitted:
        """Creates the request; one of the same name that was made for the same key is taken up again.

        Raises APIError, IncompatibleRequest."""
        meta = ObjectMeta(name=order.name) if order.name else ObjectMeta(generate_name="csr-")
        spec = CertificateSigningRequestSpec(request=signing.request, signer_name=order.signer, usages=order.usages)
        body = CertificateSigningRequest(metadata=meta, spec=spec)
        try:
            made = await self._client.create(paths.CERTIFICATE_REQUESTS, body, CertificateSigningRequest)
        except AlreadyExists:
            if not order.name:
                raise
            path = f"{paths.CERTIFICATE_REQUESTS}/{order.name}"
            made = await self._client.get(path, CertificateSigningRequest)
            if problem := incompatibility(made, order, signing, self._clock.now()):
                raise IncompatibleRequest(f"signing request {order.name} is there already, {problem}") from None
            logger.info("signing request of an earlier try is taken up again", extra={"request": order.name})
        return Submitted(name=made.metadata.name, uid=made.metadata.uid, signer=order.signer)

    async def wait(self, request: Submitted, seconds: float) -> Issued | NotIssued:
        """Waits for approval and signature, `seconds` at most."""
        overdue = StandingFinding(self._recorder)
        reminder = asyncio.get_running_loop().call_later(_PATIENCE, self._remind, request, overdue)
        try:
            with self._recorder.wait(WaitKind.API_CALL, on=f"approval and signing of {request.name}"):
                async with asyncio.timeout(seconds):
                    return await self._end_of(request)
        except TimeoutError:
            return NotIssued(f"signing request {request.name} was neither approved nor denied in {seconds:.0f} s")
        finally:
            reminder.cancel()
            overdue.over()

    def _remind(self, request: Submitted, overdue: StandingFinding) -> None:
        text = waiting_for_approval(request.name, request.signer)
        logger.warning("signing request waits for approval", extra={"request": request.name, "signer": request.signer})
        overdue.is_(text)

    async def _end_of(self, request: Submitted) -> Issued | NotIssued:
        while True:
            try:
                end = await self._look(request)
                if end is not None:
                    return end
            except Gone:
                # What the watch began with is too old by now: a new list, at once.
                continue
            except APIError as error:
                logger.info("signing request cannot be read", extra={"request": request.name, "error": str(error)})
            await asyncio.sleep(_TRY_AGAIN)

    async def _look(self, request: Submitted) -> Issued | NotIssued | None:
        """One list and one watch; None when the watch ended without an answer."""
        query = {"fieldSelector": f"metadata.name={request.name}"}
        version, found = "", False
        pages = self._client.list_pages(paths.CERTIFICATE_REQUESTS, CertificateSigningRequest, query=query)
        async for page in pages:
            version = page.resource_version
            for item in page.items:
                found = True
                if (end := outcome(item, request.uid)) is not None:
                    return end
            found = found or bool(page.undecodable)
        if not found:
            return NotIssued(f"signing request {request.name} was deleted")
        events = self._client.watch(
            paths.CERTIFICATE_REQUESTS, CertificateSigningRequest, resource_version=version, query=query
        )
        async for event in events:
            if event.kind is WatchKind.DELETED:
                return NotIssued(f"signing request {request.name} was deleted")
            seen = event.object
            if isinstance(seen, CertificateSigningRequest) and (end := outcome(seen, request.uid)) is not None:
                return end
        return None


def incompatibility(there: CertificateSigningRequest, order: Order, signing: SigningInput, now: datetime) -> str:
    """Why a request that is there already cannot be used; empty if it can."""
    try:
        asked = read_request(there.spec.request)
        issued = read_certificates(there.status.certificate) if there.status.certificate else ()
    except BadCertificate as error:
        return f"but {error}"
    if (asked.subject.common_name, asked.subject.organizations) != (
        order.subject.common_name,
        order.subject.organizations,
    ):
        return f"but for subject {asked.subject.common_name}"
    if there.spec.signer_name != order.signer:
        return f"but for signer {there.spec.signer_name}"
    if asked.public_key != signing.public_key:
        return "but for another key"
    if any(one.not_after < now for one in issued):
        return "but its certificate is expired; delete it (kubectl delete csr)"
    return ""
