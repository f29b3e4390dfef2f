"""Configuration data of an agent without API server: there is none beyond what stands in the pod."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.podspec.object_environment import UNRESOLVED, ResolvedEnvironment
from glasslet.runtime.protocols import RegistryAuth

Credentials = Callable[[Pod, str], Awaitable[tuple[RegistryAuth, ...]]]


async def anonymous(pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
    """No credentials for any image."""
    return ()


class StandaloneData:
    """Implements `collaborators.ConfigurationData`. `credentials`: the node's own; `plugins`: those of plugins."""

    def __init__(self, *, credentials: Credentials = anonymous, plugins: Credentials = anonymous) -> None:
        self._credentials = credentials
        self._plugins = plugins

    def register(self, pod: Pod) -> None:
        """Nothing is kept for anybody."""

    def forget(self, ref: PodRef) -> None:
        """Nothing was kept."""

    async def environment(self, pod: Pod, container: Container) -> ResolvedEnvironment:
        """Nothing can be resolved; what needs it is refused where it is used."""
        return UNRESOLVED

    async def credentials(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        """The node's."""
        return await self._credentials(pod, image)

    async def plugin_credentials(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        """Those of plugins."""
        return await self._plugins(pod, image)
