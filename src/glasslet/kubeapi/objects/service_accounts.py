"""Service accounts for credential provider plugins: read for each request, as their annotations may change at any
moment."""

from __future__ import annotations

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object
from glasslet.kubeapi import paths
from glasslet.kubeapi.objects.tokens import ServiceAccountTokens, TokenFor
from glasslet.kubeapi.protocols import APIClient


class ServiceAccount(Object, frozen=True, kw_only=True):
    """`v1.ServiceAccount`, as far as plugins need it."""

    metadata: ObjectMeta = ObjectMeta()


class APIServiceAccounts:
    """Implements `runtime.images.plugin_service_account.ServiceAccounts`."""

    def __init__(self, client: APIClient, tokens: ServiceAccountTokens) -> None:
        self._client = client
        self._tokens = tokens

    async def account(self, namespace: str, name: str) -> ObjectMeta:
        """The account's metadata. Raises APIError."""
        path = paths.namespaced(namespace, "serviceaccounts", name)
        return (await self._client.get(path, ServiceAccount)).metadata

    async def token(self, wanted: TokenFor) -> str:
        """A token for the account. Raises APIError."""
        return await self._tokens.get(wanted)
