"""The plugins of DRA drivers that are registered on this node, and whether each is connected.

In memory: after a restart of the agent they are found by their sockets. During an upgrade of a driver its old and its
new plugin are registered side by side; the newest one that is connected is called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from grpc import ChannelConnectivity
from grpc.aio import Channel, insecure_channel

from glasslet.concurrency.supervision import Supervisor
from glasslet.exchange.claims import DeviceClaimProblem

_LARGEST = 4 * 1024 * 1024
_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", _LARGEST),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
)

Listener = Callable[[str], None]
"""Called with a driver's name when one of its plugins comes, goes, connects or loses its connection."""


class DriverNotRegistered(DeviceClaimProblem):
    """No plugin of that driver is registered."""


class DRAPlugin:
    """One plugin of a driver. `service`: the name of the gRPC service that it is called by."""

    def __init__(self, driver: str, endpoint: str, service: str) -> None:
        self.driver = driver
        self.endpoint = endpoint
        self.service = service
        self.connected = False
        self.removed = False
        self.channel: Channel = insecure_channel(f"unix:{endpoint}", options=_OPTIONS)

    async def stay_connected(self, changed: Listener) -> None:
        """Connects, again and again, until the channel is closed."""
        try:
            while not self.removed:
                state = self.channel.get_state(try_to_connect=True)
                if (up := state is ChannelConnectivity.READY) != self.connected:
                    self.connected = up
                    changed(self.driver)
                await self.channel.wait_for_state_change(state)
        except Exception:
            # Waiting on a channel that was closed meanwhile is an error of the library.
            if not self.removed:
                raise

    async def close(self) -> None:
        """Ends the connection, and the calls on it."""
        self.removed = True
        self.connected = False
        await self.channel.close()


class DRAPlugins:
    """All plugins, by driver in the order of their registration. `run` keeps them connected."""

    def __init__(self) -> None:
        self._by_driver: dict[str, list[DRAPlugin]] = {}
        self._listeners: list[Listener] = []
        self._tasks = Supervisor()

    async def run(self) -> None:
        """Runs until cancelled; then all connections end."""
        try:
            await self._tasks.run()
        finally:
            for plugins in self._by_driver.values():
                for plugin in plugins:
                    await plugin.close()
            self._by_driver.clear()

    def subscribe(self, listener: Listener) -> None:
        """Has it called at each change."""
        self._listeners.append(listener)

    def add(self, plugin: DRAPlugin) -> str:
        """The newest of its driver from now on. Returns why it cannot be added; "" for success."""
        plugins = self._by_driver.setdefault(plugin.driver, [])
        if any(one.endpoint == plugin.endpoint for one in plugins):
            return f"endpoint {plugin.endpoint} already registered for DRA driver plugin {plugin.driver}"
        plugins.append(plugin)
        self._tasks.start(f"DRA plugin {plugin.endpoint}", partial(plugin.stay_connected, self._changed))
        self._changed(plugin.driver)
        return ""

    async def remove(self, driver: str, endpoint: str) -> None:
        """The plugin at that socket is gone. Others of the driver stay."""
        plugins = self._by_driver.get(driver, [])
        gone = [plugin for plugin in plugins if plugin.endpoint == endpoint]
        if not gone:
            return
        plugins.remove(gone[0])
        if not plugins:
            del self._by_driver[driver]
        self._changed(driver)
        await gone[0].close()

    def choose(self, driver: str) -> DRAPlugin:
        """The newest connected plugin, or the newest where none is. Raises DriverNotRegistered."""
        if not driver:
            raise DriverNotRegistered("DRA driver name is empty")
        plugins = self._by_driver.get(driver)
        if not plugins:
            raise DriverNotRegistered(f"DRA driver {driver} is not registered", driver=driver)
        return next((plugin for plugin in reversed(plugins) if plugin.connected), plugins[-1])

    def connected(self, driver: str) -> bool:
        """Whether a plugin of the driver is connected."""
        return any(plugin.connected for plugin in self._by_driver.get(driver, ()))

    def drivers(self) -> tuple[str, ...]:
        """The names of drivers with a plugin."""
        return tuple(sorted(self._by_driver))

    def _changed(self, driver: str) -> None:
        for listener in self._listeners:
            listener(driver)
