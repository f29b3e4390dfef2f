"""Builds image collection and credential provider plugins; without configuration no module of plugins is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.kubeapi.protocols import APIClient
from glasslet.pods.standalone_data import Credentials, anonymous
from glasslet.runtime.garbage.image_rules import ImageLimits, image_names
from glasslet.runtime.garbage.images import ImageCollector, InUse, image_disk
from glasslet.runtime.garbage.reporting import CollectionReporting


def _nothing_kept(uid: PodUID) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSide:
    """`forget`: the pod is over, its tokens are dropped."""

    credentials: Credentials = anonymous
    forget: Callable[[PodUID], None] = _nothing_kept


def build_credential_plugins(foundation: Foundation, client: APIClient | None) -> PluginSide:
    """`client` None: standalone. Raises ValueError if the configuration changed for the worse since it was checked."""
    options = foundation.options
    if not options.image_credential_provider_config:
        return PluginSide()
    from glasslet.config.credential_providers import TOKENS_GATE, read_credential_providers
    from glasslet.kubeapi.objects.service_accounts import APIServiceAccounts
    from glasslet.kubeapi.objects.tokens import ServiceAccountTokens
    from glasslet.runtime.images.plugin_process import PluginProcess
    from glasslet.runtime.images.plugins import CredentialPlugin, CredentialPlugins
    from glasslet.telemetry.metrics.images import CredentialPluginMetrics

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
    accounts = APIServiceAccounts(client, tokens) if client is not None and tokens is not None else None
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


def build_image_collection(
    foundation: Foundation, runtime: RuntimeSide, pods: Callable[[], Iterable[Pod]]
) -> ImageCollector:
    """`pods`: those that go on; their images are in use also before a container is made of them."""
    configuration = foundation.configuration
    images = runtime.connection.images
    return ImageCollector(
        images=images,
        in_use=InUse(
            synced=runtime.observed.synced,
            pods=runtime.observed.all,
            names=lambda: image_names(pods()),
            sandbox_image=runtime.connection.runtime.sandbox_image,
        ),
        disk=partial(image_disk, images, foundation.threads),
        limits=ImageLimits(
            high_percent=configuration.image_gc_high_threshold_percent,
            low_percent=configuration.image_gc_low_threshold_percent,
            minimum_age=timedelta(seconds=configuration.image_minimum_gc_age),
            maximum_age=timedelta(seconds=configuration.image_maximum_gc_age),
            by_handler=foundation.loaded.gates.enabled("RuntimeClassInImageCriApi"),
        ),
        metrics=foundation.metrics.images,
        report=CollectionReporting(recorder=foundation.record, clock=foundation.clock, events=foundation.events.node),
        collected=runtime.verification.prune if runtime.verification is not None else None,
    )
