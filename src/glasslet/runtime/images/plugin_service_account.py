"""The service account of a pod, as far as a credential provider plugin wants to know it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.config.credential_providers import TokenAttributes
from glasslet.kubeapi.errors import APIError
from glasslet.kubeapi.objects.tokens import TokenFor
from glasslet.runtime.images.plugin_messages import PluginFailed


class ServiceAccounts(Protocol):
    """Service accounts of pods on this node. Both raise APIError."""

    async def account(self, namespace: str, name: str) -> ObjectMeta:
        """The metadata of an account."""

    async def token(self, wanted: TokenFor) -> str:
        """A token of the account, bound to a pod."""


class NotForThisPod(Exception):
    """The plugin is not meant for this pod; the message says why. This is no failure."""


class PodAccount(Struct, frozen=True, kw_only=True):
    """A pod's service account. `repr` does not show the token."""

    namespace: str
    name: str
    uid: str
    annotations: Mapping[str, str]
    token: str

    def __repr__(self) -> str:
        return f"PodAccount({self.namespace}/{self.name})"

    def cache_key(self, cache_type: str) -> tuple[object, ...]:
        """The cache key of a plugin's answer, by `cacheType`. Holds a hash instead of the token."""
        key = (self.namespace, self.name, self.uid, tuple(sorted(self.annotations.items())))
        return (*key, hashlib.sha256(self.token.encode()).hexdigest()) if cache_type == "Token" else key


async def pod_account(pod: Pod, wanted: TokenAttributes, accounts: ServiceAccounts | None) -> PodAccount | None:
    """None for a pod without an account, if the plugin serves such pods. Raises NotForThisPod, PluginFailed."""
    namespace, name = pod.metadata.namespace, pod.spec.service_account_name
    if not name:
        if wanted.require_service_account:
            raise NotForThisPod("the pod has no service account")
        return None
    if accounts is None:
        raise PluginFailed("tokens of service accounts need an API server, and this agent runs without one")
    try:
        account = await accounts.account(namespace, name)
        annotations = _annotations(account.annotations, wanted)
        token = await accounts.token(
            TokenFor(
                namespace=namespace,
                service_account=name,
                service_account_uid=account.uid,
                pod=pod.metadata.name,
                uid=PodUID(pod.metadata.uid),
                audience=wanted.service_account_token_audience,
            )
        )
    except APIError as error:
        raise PluginFailed(f"service account {namespace}/{name}: {error.message}") from None
    return PodAccount(namespace=namespace, name=name, uid=account.uid, annotations=annotations, token=token)


def _annotations(present: Mapping[str, str], wanted: TokenAttributes) -> Mapping[str, str]:
    for key in wanted.required_service_account_annotation_keys:
        # An annotation may be how a workload asks for this plugin: that it is missing is no error.
        if key not in present:
            raise NotForThisPod(f"required annotation {key} not found")
    keys = (*wanted.required_service_account_annotation_keys, *wanted.optional_service_account_annotation_keys)
    return {key: present[key] for key in keys if key in present}
