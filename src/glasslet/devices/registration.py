"""The socket `kubelet.sock` at which device plugins register, and the folder that their own sockets are in."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from grpc import GenericRpcHandler, StatusCode, method_handlers_generic_handler, unary_unary_rpc_method_handler
from grpc.aio import ServicerContext

from glasslet.api.resource_names import is_extended
from glasslet.devices._generated import deviceplugin_pb2 as messages
from glasslet.devices.plugin import DevicePluginFailed
from glasslet.host.files.small_files import make_directory

logger = logging.getLogger(__name__)

FOLDER = "/var/lib/kubelet/device-plugins"
"""Whatever the root directory is: plugins have it built in."""
FOLDER_VARIABLE = "GLASSLET_DEVICE_PLUGIN_DIR"
"""Another folder, for a second agent on a machine."""
SOCKET = "kubelet.sock"
VERSION = "v1beta1"
_FOLDER_MODE = 0o750
_CANNOT_REGISTER = (
    "device registration error: device plugin registration gRPC server failed and no device plugins can register"
)


def device_plugin_folder(environment: Mapping[str, str]) -> str:
    """Where plugins' sockets and the checkpoint are. Raises ValueError naming the variable, its value and what is
    allowed."""
    folder = environment.get(FOLDER_VARIABLE, "")
    if not folder:
        return FOLDER
    if os.path.normpath(folder) != folder or not folder.startswith("/") or folder == "/":
        raise ValueError(f"environment variable {FOLDER_VARIABLE}={folder!r}: want a clean absolute path of a folder")
    return folder


def registration_problem(problem: str) -> str | None:
    """The health check `device-plugin`, from the problem of the registration socket ("": none)."""
    return f"{_CANNOT_REGISTER}: {problem}" if problem else None


class Plugins(Protocol):
    """`offers.Offers`. `register` raises DevicePluginFailed."""

    async def register(self, resource: str, socket: str) -> None: ...
    async def deregister(self, resource: str, socket: str) -> None: ...


class BadRegistration(ValueError):
    """The plugin's registration is invalid."""


def check_registration(resource: str, versions: Collection[str]) -> None:
    """Raises BadRegistration."""
    if VERSION not in versions:
        asked = versions[0] if isinstance(versions, tuple) and len(versions) == 1 else " ".join(versions)
        raise BadRegistration(
            f'requested API version "{asked}" is not supported by kubelet. Supported version is ["{VERSION}"]'
        )
    if not is_extended(resource):
        raise BadRegistration(f'the ResourceName "{resource}" is invalid')


def registration_service(folder: str, plugins: Plugins, counted: Callable[[str], None]) -> GenericRpcHandler:
    """The service v1beta1.Registration. `folder`: where plugins' sockets are; `counted` is called for each try."""

    async def register(
        request: messages.RegisterRequest, context: ServicerContext[messages.RegisterRequest, messages.Empty]
    ) -> messages.Empty:
        counted(request.resource_name)
        try:
            check_registration(request.resource_name, (request.version,))
            await plugins.register(request.resource_name, plugin_socket(folder, request.endpoint))
        except (BadRegistration, DevicePluginFailed) as error:
            logger.warning("registration refused", extra={"resource": request.resource_name, "why": str(error)})
            await context.abort(StatusCode.UNKNOWN, str(error))
        return messages.Empty()

    handler = unary_unary_rpc_method_handler(
        register,
        request_deserializer=messages.RegisterRequest.FromString,
        response_serializer=messages.Empty.SerializeToString,
    )
    return method_handlers_generic_handler(f"{VERSION}.Registration", {"Register": handler})


def plugin_socket(folder: str, endpoint: str) -> str:
    """The path of a plugin's socket. Raises BadRegistration for an endpoint outside the folder, or none."""
    path = os.path.normpath(os.path.join(folder, endpoint.lstrip("/")))
    if not endpoint or not path.startswith(f"{folder}/"):
        raise BadRegistration(f'the endpoint "{endpoint}" is invalid: it must be a socket below {folder}')
    return path


def prepare_folder(folder: str) -> None:
    """Makes the folder and removes the sockets in it: plugins notice, and register again. Raises OSError."""
    make_directory(folder, _FOLDER_MODE)
    with os.scandir(folder) as entries:
        for entry in entries:
            if stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                os.unlink(entry.path)


class RegistryHandler:
    """Device plugins that register by a socket in plugins_registry: `plugin_registry.PluginHandler`."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins

    def validate(self, name: str, versions: Collection[str]) -> str:
        """Why the registration is invalid; "" if it is valid."""
        if VERSION not in versions:
            supported = " ".join(versions)
            return f"manager version, {VERSION}, is not among plugin supported versions [{supported}]"
        if not is_extended(name):
            return f'invalid name of device plugin socket: the ResourceName "{name}" is invalid'
        return ""

    async def register(self, name: str, endpoint: str) -> str:
        """Registers the plugin. Returns why it failed; "" for success."""
        try:
            await self._plugins.register(name, endpoint)
        except DevicePluginFailed as error:
            return str(error)
        return ""

    async def deregister(self, name: str, endpoint: str) -> None:
        """Deregisters the plugin, whose socket was removed."""
        await self._plugins.deregister(name, endpoint)
