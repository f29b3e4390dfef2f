"""DRA drivers register by a socket in plugins_registry: `plugin_registry.PluginHandler`."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from glasslet.dra.plugins import DRAPlugin, DRAPlugins

TYPE = "DRAPlugin"
SERVICES = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
"""Services that the agent knows, as drivers name them."""
_FULL = "k8s.io.kubelet.pkg.apis.dra."


class DRARegistration:
    """Registers plugins of drivers."""

    def __init__(self, plugins: DRAPlugins) -> None:
        self._plugins = plugins
        self._validated: dict[str, str] = {}

    def validate(self, name: str, versions: Collection[str]) -> str:
        """Why the registration is invalid; "" if it is valid. `register` of that name follows at once."""
        if not name:
            return "DRA driver name is empty"
        service, problem = choose_service(versions)
        if problem:
            return f"invalid supported gRPC versions of DRA driver plugin {name}: {problem}"
        self._validated[name] = service
        return ""

    async def register(self, name: str, endpoint: str) -> str:
        """Registers the plugin, connected or not. Returns why it failed; "" for success."""
        plugin = DRAPlugin(name, endpoint, f"{_FULL}{self._validated.pop(name)}")
        if problem := self._plugins.add(plugin):
            await plugin.close()
        return problem

    async def deregister(self, name: str, endpoint: str) -> None:
        """The plugin is gone. What it prepared stays prepared. Other plugins of the driver are not touched."""
        await self._plugins.remove(name, endpoint)


def choose_service(versions: Iterable[str]) -> tuple[str, str]:
    """(service, problem): the first of a plugin's services that the agent knows, as the Go kubelet chooses."""
    offered = list(versions)
    if not offered:
        return "", "empty list of supported gRPC services (aka supported versions)"
    for service in offered:
        if service in SERVICES:
            return service, ""
    theirs, ours = (" ".join(f'"{one}"' for one in names) for names in (offered, SERVICES))
    return "", f"none of services supported by the plugin ([{theirs}]) are supported by the kubelet ([{ours}])"
