"""What a driver is given from the API server: Secrets, tokens of the pod's account, the attachment's metadata. None of
it is kept here."""

from __future__ import annotations

import json
from typing import Protocol, TypeVar

from glasslet.api.configdata import Secret
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.storage import CSIDriver, VolumeAttachment
from glasslet.api.times import rfc3339
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import APIError
from glasslet.kubeapi.objects.tokens import TokenFor, TokenRequestStatus
from glasslet.volumes.csi.errors import PREFIX, NotTried
from glasslet.volumes.csi.places import attachment_name
from glasslet.volumes.csi.volume_terms import CSIVolume, SecretName

T = TypeVar("T")


class Reader(Protocol):
    """Reads objects (`kubeapi.client`). Raises APIError."""

    async def get(self, path: str, kind: type[T]) -> T: ...


class AccountTokens(Protocol):
    """Tokens with their ends (`kubeapi.objects.tokens`). Raises APIError."""

    async def granted(self, wanted: TokenFor) -> TokenRequestStatus: ...


class CSIClusterData:
    """Reads anew at each call."""

    def __init__(self, *, client: Reader, tokens: AccountTokens, node: str) -> None:
        self._client = client
        self._tokens = tokens
        self._node = node

    async def secret(self, name: SecretName | None, field: str) -> dict[str, str]:
        """The values of a Secret, {} for None. `field`: the one that names it. Raises NotTried."""
        if name is None:
            return {}
        try:
            found = await self._client.get(paths.namespaced(name.namespace, "secrets", name.name), Secret)
        except APIError as error:
            raise NotTried(
                f"fetching {field} {name.namespace}/{name.name} failed: {PREFIX}failed to find the secret {name.name} "
                f"in the namespace {name.namespace} with error: {error.message}"
            ) from error
        return {key: value.decode("utf-8", "replace") for key, value in found.data.items()}

    async def publish_context(self, volume: CSIVolume) -> dict[str, str]:
        """The metadata of the volume's attachment to this node. Raises NotTried, also while it is not attached."""
        name = attachment_name(volume.handle, volume.driver, self._node)
        try:
            found = await self._client.get(paths.volume_attachment(name), VolumeAttachment)
        except APIError as error:
            text = f"volume {volume.handle} has GET error for volume attachment {name}: {error.message}"
            raise NotTried(text, step="WaitForAttach") from error
        if found.metadata.deletion_timestamp is not None:
            raise NotTried("volume attachment is being deleted", step="WaitForAttach")
        if not found.status.attached:
            failed = found.status.attach_error
            said = failed.message if failed is not None else ""
            text = said or f"volume {volume.handle} is not attached for volume attachment {name}"
            raise NotTried(text, step="WaitForAttach")
        return dict(found.status.attachment_metadata)

    async def tokens(self, pod: Pod, driver: CSIDriver | None) -> str:
        """The tokens that the driver wants, as JSON by audience; "" for none. Raises NotTried."""
        if driver is None or not driver.spec.token_requests:
            return ""
        granted = {}
        for wanted in driver.spec.token_requests:
            request = TokenFor(
                namespace=pod.metadata.namespace,
                service_account=pod.spec.service_account_name or "default",
                pod=pod.metadata.name,
                uid=PodUID(pod.metadata.uid),
                audience=wanted.audience,
                expiration_seconds=wanted.expiration_seconds,
            )
            try:
                found = await self._tokens.granted(request)
            except APIError as error:
                raise NotTried(
                    f"{PREFIX}mounter.SetUpAt failed to get service account token attributes: {error.message}"
                ) from error
            ends = rfc3339(found.expiration_timestamp) if found.expiration_timestamp is not None else None
            granted[wanted.audience] = {"token": found.token, "expirationTimestamp": ends}
        return json.dumps(granted, separators=(",", ":"))
