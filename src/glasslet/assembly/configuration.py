"""Builds what pods take from API objects: volumes made of files, environments, credentials for pulls.

    side = build_configuration_side(foundation, client, ConfigurationNeeds(node=..., on_change=..., ...))
    VolumeManager(plugins={..., **side.plugins}); PodServices(data=side.data); running(side.services)

Without a client, pods still get their downwardAPI volumes and the node's credentials, and the objects of the folder
that the environment names (`kubeapi.objects.folder`); other uses fail with an error that names the API server.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from msgspec import Struct, field

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.volume import DownwardAPIVolumeFile
from glasslet.assembly.foundation import Foundation
from glasslet.kubeapi.objects.cached import DirectObjects, node_ttl
from glasslet.kubeapi.objects.folder import ObjectFolder, objects_folder
from glasslet.kubeapi.objects.kinds import CONFIG_MAPS, SECRETS
from glasslet.kubeapi.objects.pod_objects import Detection, PodObjects, build_pod_objects
from glasslet.kubeapi.objects.polled import RATE
from glasslet.kubeapi.objects.services import NoServices, Services
from glasslet.kubeapi.objects.tokens import ServiceAccountTokens
from glasslet.kubeapi.objects.trust_bundles import TrustBundles
from glasslet.kubeapi.protocols import APIClient
from glasslet.pods.collaborators import ConfigurationData
from glasslet.pods.configuration_data import ClusterData, Credentials, StandaloneData, anonymous
from glasslet.podspec.downward import file_text
from glasslet.podspec.errors import ConfigError
from glasslet.podspec.object_environment import ObjectEnvironment
from glasslet.podspec.pod_level import pod_memory_limit
from glasslet.podspec.request import NodeFacts
from glasslet.runtime.images.keyring_files import NodeKeyring, credential_paths
from glasslet.runtime.images.keyring_secrets import PullCredentials
from glasslet.volumes.data_sources import NoCluster, Objects
from glasslet.volumes.file_volume import FileVolumes, Memory
from glasslet.volumes.plugin import MountCalls, VolumePlugin, VolumeProblem
from glasslet.volumes.sources import CONFIG_MAP, DOWNWARD_API, PROJECTED, SECRET
from glasslet.volumes.types.config_map import ConfigMapVolume
from glasslet.volumes.types.downward_api import DownwardAPIVolume
from glasslet.volumes.types.projected import ProjectedVolume, Projections
from glasslet.volumes.types.secret import SecretVolume


class ConfigurationNeeds(Struct, frozen=True, kw_only=True):
    """`on_change`: objects of a pod changed; `on_change_of_all`: objects that any pod may use changed. `annotations`:
    those of the Node object, for the time to live of strategy Cache."""

    mounts: MountCalls
    node: Callable[[], NodeFacts]
    allocatable_memory: Callable[[], int]
    on_change: Callable[[PodUID], None]
    on_change_of_all: Callable[[], None]
    annotations: Callable[[], Mapping[str, str]] = dict


class ConfigurationSide(Struct, frozen=True, kw_only=True):
    """`services` run while pods do. Of a standalone agent `listed` is None; `folder` has its objects, if any."""

    plugins: Mapping[str, VolumePlugin]
    data: ConfigurationData
    services: Mapping[str, Callable[[], Awaitable[None]]]
    listed: Services | None = None
    tokens: ServiceAccountTokens | None = None
    objects: Objects = field(default_factory=NoCluster)
    folder: ObjectFolder | None = None


def build_configuration_side(
    foundation: Foundation, client: APIClient | None, needs: ConfigurationNeeds
) -> ConfigurationSide:
    """`client` None: standalone."""
    node_keyring = NodeKeyring(
        paths=credential_paths(foundation.root.root_dir, os.environ.get("HOME", "")), clock=foundation.clock
    )
    credential_plugins = build_credential_plugins(foundation, client)
    if client is None:
        return _standalone(foundation, needs, node_keyring, credential_plugins)
    objects = _objects(foundation, client, needs)
    tokens = ServiceAccountTokens(client=client, recorder=foundation.record, clock=foundation.clock)
    listed = Services(client=client, recorder=foundation.record)
    services: dict[str, Callable[[], Awaitable[None]]] = {
        "objects of pods": objects.run,
        "services": listed.run,
    }
    anchors = None
    if foundation.loaded.gates.enabled("ClusterTrustBundleProjection"):
        anchors = TrustBundles(client=client, recorder=foundation.record, on_change=needs.on_change_of_all)
        services["trust bundles"] = anchors.run
    sources = Projections(objects=objects, tokens=tokens, field_text=partial(_field_text, needs.node), anchors=anchors)
    return ConfigurationSide(
        plugins=_plugins(foundation, needs, sources),
        objects=objects,
        data=ClusterData(
            objects=objects,
            tokens=tokens,
            environments=ObjectEnvironment(objects=objects, services=listed),
            credentials=PullCredentials(secrets=objects, node=node_keyring, events=foundation.events.pod),
            plugins=credential_plugins.credentials,
            forget_plugin_tokens=credential_plugins.forget,
        ),
        services=services,
        listed=listed,
        tokens=tokens,
    )


def _standalone(
    foundation: Foundation, needs: ConfigurationNeeds, keyring: NodeKeyring, plugins: PluginSide
) -> ConfigurationSide:
    folder, nothing = objects_folder(foundation.threads), NoCluster()
    held = (
        PodObjects(
            secrets=DirectObjects(kind=SECRETS, client=folder),
            config_maps=DirectObjects(kind=CONFIG_MAPS, client=folder),
        )
        if folder is not None
        else None
    )
    objects: Objects = held or nothing
    alone = Projections(
        objects=objects,
        tokens=nothing,
        field_text=partial(_field_text, needs.node),
        anchors=nothing if foundation.loaded.gates.enabled("ClusterTrustBundleProjection") else None,
    )
    own = PullCredentials(secrets=held, node=keyring, events=foundation.events.pod)
    return ConfigurationSide(
        plugins=_plugins(foundation, needs, alone),
        objects=objects,
        data=StandaloneData(
            credentials=own.matching,
            plugins=plugins.credentials,
            environments=ObjectEnvironment(objects=held, services=NoServices()) if held is not None else None,
        ),
        services={},
        folder=folder,
    )


def _field_text(node: Callable[[], NodeFacts], item: DownwardAPIVolumeFile, pod: Pod, /) -> str:
    # The volumes have an error of their own.
    try:
        return file_text(item, pod, node())
    except ConfigError as error:
        raise VolumeProblem(error.message) from error


def _objects(foundation: Foundation, client: APIClient, needs: ConfigurationNeeds) -> PodObjects:
    configuration = foundation.configuration
    detection = Detection(
        strategy=configuration.config_map_and_secret_change_detection_strategy,
        sync_frequency=configuration.sync_frequency,
        on_change=needs.on_change,
        ttl=lambda: node_ttl(needs.annotations()),
        poll_rate=min(RATE, configuration.kube_api_qps / 5) if configuration.kube_api_qps > 0 else RATE,
    )
    return build_pod_objects(detection, client=client, recorder=foundation.record, clock=foundation.clock)


def _plugins(foundation: Foundation, needs: ConfigurationNeeds, sources: Projections) -> Mapping[str, VolumePlugin]:
    volumes = FileVolumes(
        root=foundation.root,
        mounts=needs.mounts,
        threads=foundation.threads,
        clock=foundation.clock,
        memory=Memory(pod_limit=pod_memory_limit, allocatable=needs.allocatable_memory),
    )
    return {
        CONFIG_MAP: ConfigMapVolume(volumes=volumes, objects=sources.objects),
        SECRET: SecretVolume(volumes=volumes, objects=sources.objects),
        DOWNWARD_API: DownwardAPIVolume(volumes=volumes, field_text=sources.field_text),
        PROJECTED: ProjectedVolume(volumes=volumes, projections=sources),
    }


def _nothing_kept(uid: PodUID) -> None:
    return


class PluginSide(Struct, frozen=True, kw_only=True):
    """`forget` drops the tokens of a removed pod."""

    credentials: Credentials = anonymous
    forget: Callable[[PodUID], None] = _nothing_kept


def build_credential_plugins(foundation: Foundation, client: APIClient | None) -> PluginSide:
    """`client` None: standalone agent. Raises ValueError if the configuration changed for the worse since it was
    checked."""
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
