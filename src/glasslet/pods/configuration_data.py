"""Configuration data and credentials of pods: from the API server, or without one from the pod and the node alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from glasslet.api.container import Container
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.kubeapi.objects.pod_objects import PodObjects
from glasslet.kubeapi.objects.tokens import ServiceAccountTokens
from glasslet.podspec.object_environment import UNRESOLVED, ObjectEnvironment, ResolvedEnvironment
from glasslet.runtime.images.keyring_secrets import PullCredentials
from glasslet.runtime.protocols import RegistryAuth

Credentials = Callable[[Pod, str], Awaitable[tuple[RegistryAuth, ...]]]


async def anonymous(pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
    """No credentials for any image."""
    return ()


class StandaloneData:
    """Implements `collaborators.ConfigurationData`. `credentials`: the node's own; `plugins`: those of plugins;
    `environments` None: there are no objects."""

    def __init__(
        self,
        *,
        credentials: Credentials = anonymous,
        plugins: Credentials = anonymous,
        environments: ObjectEnvironment | None = None,
    ) -> None:
        self._credentials = credentials
        self._plugins = plugins
        self._environments = environments

    def register(self, pod: Pod) -> None:
        """There is nothing to keep."""

    def forget(self, ref: PodRef) -> None:
        """There is nothing to drop."""

    async def environment(self, pod: Pod, container: Container) -> ResolvedEnvironment:
        """From objects, if there are any. Without them nothing can be resolved: a container that needs it is refused
        where it is created. Raises ConfigError."""
        return await self._environments.resolve(pod, container) if self._environments is not None else UNRESOLVED

    async def credentials(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        """The node's."""
        return await self._credentials(pod, image)

    async def plugin_credentials(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        """Those of plugins."""
        return await self._plugins(pod, image)


class ClusterData:
    """Implements `collaborators.ConfigurationData`. `plugins`: credentials of plugins; `forget_plugin_tokens`: drops
    the tokens that they got for a pod."""

    def __init__(
        self,
        *,
        objects: PodObjects,
        tokens: ServiceAccountTokens,
        environments: ObjectEnvironment,
        credentials: PullCredentials,
        plugins: Credentials,
        forget_plugin_tokens: Callable[[PodUID], None],
    ) -> None:
        self._objects = objects
        self._tokens = tokens
        self._environments = environments
        self._credentials = credentials
        self._plugins = plugins
        self._forget_plugin_tokens = forget_plugin_tokens

    def register(self, pod: Pod) -> None:
        """Keeps the objects that the pod names."""
        self._objects.register(pod)

    def forget(self, ref: PodRef) -> None:
        """Drops the objects that only this pod needed, and its tokens."""
        self._objects.forget(ref.uid)
        self._tokens.forget(ref.uid)
        self._forget_plugin_tokens(ref.uid)

    async def environment(self, pod: Pod, container: Container) -> ResolvedEnvironment:
        """Services, ConfigMaps and Secrets. Raises ConfigError."""
        return await self._environments.resolve(pod, container)

    async def credentials(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        """Those of the pod's pull secrets, then the node's."""
        return await self._credentials.matching(pod, image)

    async def plugin_credentials(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        """Those of credential provider plugins."""
        return await self._plugins(pod, image)
