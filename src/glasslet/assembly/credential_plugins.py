"""Credential provider plugins, put together. Without configuration nothing of them is even imported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object, PodUID
from glasslet.api.pod import Pod
from glasslet.assembly.foundation import Foundation
from glasslet.kubeapi import paths
from glasslet.kubeapi.objects.tokens import ServiceAccountTokens, TokenFor
from glasslet.kubeapi.protocols import APIClient
from glasslet.runtime.protocols import RegistryAuth


async def _no_plugins(pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
    return ()


def _nothing_kept(uid: PodUID) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSide:
    """`forget`: the pod is over, its tokens are dropped."""

    credentials: Callable[[Pod, str], Awaitable[tuple[RegistryAuth, ...]]] = _no_plugins
    forget: Callable[[PodUID], None] = _nothing_kept


class _ServiceAccount(Object, frozen=True, kw_only=True):
    """`v1.ServiceAccount`, as far as plugins want to know it."""

    metadata: ObjectMeta = ObjectMeta()


class _ServiceAccounts:
    """Accounts of the API server, asked for each time: their annotations may change at any moment."""

    def __init__(self, client: APIClient, tokens: ServiceAccountTokens) -> None:
        self._client = client
        self._tokens = tokens

    async def account(self, namespace: str, name: str) -> ObjectMeta:
        path = paths.namespaced(namespace, "serviceaccounts", name)
        return (await self._client.get(path, _ServiceAccount)).metadata

    async def token(self, wanted: TokenFor) -> str:
        return await self._tokens.get(wanted)


def build_credential_plugins(foundation: Foundation, client: APIClient | None) -> PluginSide:
    """`client` None: standalone. Raises ValueError if the configuration changed for the worse since it was checked."""
    options = foundation.options
    if not options.image_credential_provider_config:
        return PluginSide()
    from glasslet.config.credential_providers import TOKENS_GATE, read_credential_providers
    from glasslet.runtime.images.plugin_process import PluginProcess
    from glasslet.runtime.images.plugins import CredentialPlugin, CredentialPlugins
    from glasslet.telemetry.metrics.credential_plugins import CredentialPluginMetrics

    found = read_credential_providers(
        options.image_credential_provider_config,
        options.image_credential_provider_bin_dir,
        tokens=foundation.loaded.gates.enabled(TOKENS_GATE),
    )
    if found.problems:
        raise ValueError(found.problems[0])
    config, record, clock = found.config, foundation.record, foundation.clock
    metrics = CredentialPluginMetrics(foundation.metrics.registry, config_hash=config.hash)
    tokens = ServiceAccountTokens(client=client, recorder=record, clock=clock) if client is not None else None
    accounts = _ServiceAccounts(client, tokens) if client is not None and tokens is not None else None
    plugins = CredentialPlugins(
        [
            CredentialPlugin(
                provider=provider,
                process=PluginProcess(
                    provider=provider, directory=config.directory, recorder=record, metrics=metrics, clock=clock
                ),
                accounts=accounts,
                clock=clock,
                recorder=record,
            )
            for provider in config.providers
        ]
    )
    return PluginSide(credentials=plugins.matching, forget=tokens.forget if tokens is not None else _nothing_kept)
