"""Whether a pod may use an image that is already there (gate KubeletEnsureSecretPulledImages).

    verification = PullVerification(policy=VerificationPolicy(...), files=PullRecordFiles(...), images=..., clock=...)
    if await verification.must_pull(written, image.id, auths): ...        # then pulling proves the right to it
    await verification.intend(written); await verification.pulled(written, image.id, auth)     # or .failed(written)

An image that one pod pulled with its credentials is for others only after they proved, by a pull, that theirs open the
registry too. A proof is kept on disk. In doubt the image is pulled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from glasslet.concurrency.clock import Clock
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.images.pull_record_files import PullRecordFiles
from glasslet.runtime.images.pull_records import (
    MANY_SECRETS,
    BadRecord,
    PulledRecord,
    PullSecret,
    PullServiceAccount,
    RecordedCredentials,
    account_of,
    credentials_of,
    merged,
    secrets_of,
)
from glasslet.runtime.images.reference import InvalidImageName, parse_image_name
from glasslet.runtime.model import Image
from glasslet.runtime.protocols import RegistryAuth

logger = logging.getLogger(__name__)


class VerificationPolicy(Struct, frozen=True, kw_only=True):
    """`imagePullCredentialsVerificationPolicy` and `preloadedImagesVerificationAllowlist`."""

    name: str = "NeverVerifyPreloadedImages"
    allowlist: tuple[str, ...] = ()

    def verifies(self, image: str, *, pulled_here: bool) -> bool:
        """Whether the right to an image that is there has to be proved. `pulled_here`: by a kubelet of this node."""
        match self.name:
            case "NeverVerify":
                return False
            case "NeverVerifyPreloadedImages":
                return pulled_here
            case "NeverVerifyAllowlistedImages":
                return not any(_allowed(pattern, image) for pattern in self.allowlist)
        return True


class ImageLister(Protocol):
    """The part of `ImageService` that is used here."""

    async def list_images(self) -> tuple[Image, ...]: ...


class IntentNotRecorded(Exception):
    """A pull must not begin: there would be no record that its image was pulled with credentials."""


class PullVerification:
    """One for the node. Records are read and written in threads, one at a time."""

    def __init__(
        self, *, policy: VerificationPolicy, files: PullRecordFiles, images: ImageLister, clock: Clock
    ) -> None:
        self._policy = policy
        self._files = files
        self._images = images
        self._clock = clock
        self._lock = asyncio.Lock()
        self._threads = OwnThreads("records of pulled images")
        self._under_way: dict[str, int] = {}
        self._settled = False

    async def must_pull(self, image: str, image_ref: str, auths: Sequence[RegistryAuth]) -> bool:
        """Whether the pod has to prove its right to an image that is there. `image` as the pod names it, `image_ref`:
        the runtime's id of it, `auths`: what the pod has."""
        async with self._lock:
            await self._settle()
            try:
                record = await self._threads.run(self._files.record, image_ref)
                pulled_here = record is not None or image in self._under_way
                pulled_here = pulled_here or await self._threads.run(self._files.intended, image)
            except (OSError, BadRecord) as error:
                logger.warning("record of a pull cannot be read", extra={"image": image, "error": str(error)})
                return True
            if not self._policy.verifies(image, pulled_here=pulled_here):
                return False
            repository = _repository(image)
            if record is None or repository is None or (known := record.credentials(repository)) is None:
                return True
            if known.node_pods_accessible:
                return False
            return not await self._matches(record, repository, known, auths)

    async def intend(self, image: str) -> None:
        """A pull begins. Raises IntentNotRecorded."""
        async with self._lock:
            await self._settle()
            try:
                await self._threads.run(self._files.intend, image)
            except OSError as error:
                raise IntentNotRecorded(f"failed to record image pull intent: {error}") from error
            self._under_way[image] = self._under_way.get(image, 0) + 1

    async def pulled(self, image: str, image_ref: str, auth: RegistryAuth | None) -> None:
        """The pull succeeded with these credentials (None: without any)."""
        async with self._lock:
            repository = _repository(image)
            if repository is not None and not await self._add(image_ref, repository, credentials_of(auth)):
                # The intent stays: the image still counts as pulled here, and every pod has to prove its right to it.
                return
            await self._end(image)

    async def failed(self, image: str) -> None:
        """The pull failed, or was given up."""
        async with self._lock:
            await self._end(image)

    async def prune(self, present: Collection[str], before: datetime) -> None:
        """Drops records of removed images (by id), if they were not written since."""
        async with self._lock:
            for record in await self._threads.run(self._files.records):
                if record.image_ref not in present and record.last_updated_time < before.replace(microsecond=0):
                    await self._threads.run(self._files.remove, record.image_ref)

    async def _matches(
        self, record: PulledRecord, repository: str, known: RecordedCredentials, auths: Sequence[RegistryAuth]
    ) -> bool:
        """Whether the pod has what opened the registry before: the same credentials from anywhere, or the same Secret
        whatever its content now, or the same service account."""
        few = len(known.secrets) < MANY_SECRETS
        for own in secrets_of(auths):
            verdict = _same(own, known.secrets, few=few)
            if verdict is None:
                continue
            if verdict and few:
                await self._add(record.image_ref, repository, RecordedCredentials(kubernetes_secrets=(own,)))
            return True
        account: PullServiceAccount | None = account_of(auths)
        return account is not None and account in known.accounts

    async def _add(self, image_ref: str, repository: str, credentials: RecordedCredentials) -> bool:
        """Adds to the record of an image; whether that is on disk."""
        now = self._clock.now()
        try:
            old = await self._threads.run(self._files.record, image_ref)
        except (OSError, BadRecord) as error:
            logger.warning("record of a pull cannot be read", extra={"image_ref": image_ref, "error": str(error)})
            old = None
        new = merged(old or PulledRecord(last_updated_time=now, image_ref=image_ref), repository, credentials, now)
        if new is old:
            return True
        try:
            await self._threads.run(self._files.write, new)
        except OSError as error:
            logger.error("record of a pull cannot be written", extra={"image_ref": image_ref, "error": str(error)})
            return False
        return True

    async def _end(self, image: str) -> None:
        left = self._under_way.get(image, 0) - 1
        if left > 0:
            self._under_way[image] = left
            return
        try:
            await self._threads.run(self._files.forget_intent, image)
        except OSError as error:
            logger.error("record of a begun pull cannot be removed", extra={"image": image, "error": str(error)})
            return
        self._under_way.pop(image, None)

    async def _settle(self) -> None:
        """Once: an image that an earlier agent began to pull and that is there now was pulled with unknown rights."""
        if self._settled:
            return
        try:
            begun = {_normal(intent.image): intent.image for intent in await self._threads.run(self._files.intents)}
            for image in await self._images.list_images() if begun else ():
                for name in begun.keys() & {*image.tags, *image.digests}:
                    if repository := _repository(name):
                        await self._add(image.id, repository, RecordedCredentials())
                    await self._end(begun[name])
        except (OSError, RuntimeCallError) as error:
            logger.warning("pulls of an earlier agent are not settled", extra={"error": str(error)})
            return
        self._settled = True


def _same(own: PullSecret, known: Sequence[PullSecret], *, few: bool) -> bool | None:
    """None: no match. Otherwise whether the record needs an update."""
    for other in known:
        same_hash = bool(other.credential_hash) and own.credential_hash == other.credential_hash
        same_object = own.is_same_object(other)
        if same_hash:
            return not same_object
        if same_object and few:
            return True
    return None


def _allowed(pattern: str, image: str) -> bool:
    if pattern.endswith("/*"):
        return image.startswith(pattern[:-1])
    # The tag is no part of a pattern, so it must not count in the image either.
    plain = image.partition("@")[0]
    head, slash, last = plain.rpartition("/")
    return pattern in (image, head + slash + last.partition(":")[0])


def _normal(image: str) -> str:
    try:
        return str(parse_image_name(image))
    except InvalidImageName:
        return image


def _repository(image: str) -> str | None:
    try:
        return parse_image_name(image).repository
    except InvalidImageName:
        return None
