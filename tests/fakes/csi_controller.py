"""The controller service of the CSI driver of the tests: as much as csi-sanity wants of every driver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from tests.fakes.csi_controller_messages import MESSAGES

_CREATE_DELETE = 1


class Controller:
    """Volumes by id; an id is `v-<name>`."""

    def __init__(self) -> None:
        self.volumes: dict[str, int] = {}

    def services(self, unary: Callable[[Any, Callable[[Any, Any], Awaitable[Any]]], Any]) -> dict[str, Any]:
        """The handlers by method."""
        answers = {
            "ControllerGetCapabilities": self._capabilities,
            "CreateVolume": self._create,
            "DeleteVolume": self._delete,
            "ValidateVolumeCapabilities": self._validate,
        }
        return {method: unary(MESSAGES[f"{method}Request"], answer) for method, answer in answers.items()}

    async def _capabilities(self, _request: Any, _context: Any) -> Any:
        able = MESSAGES["ControllerServiceCapability"](rpc=MESSAGES["ControllerRpc"](type=_CREATE_DELETE))
        return MESSAGES["ControllerGetCapabilitiesResponse"](capabilities=[able])

    async def _create(self, request: Any, context: Any) -> Any:
        if not request.name or not request.volume_capabilities:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "name and volume_capabilities are needed")
        if len(request.name) > 128:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "name is too long")
        wanted = request.capacity_range
        size = wanted.required_bytes or wanted.limit_bytes
        there = self.volumes.setdefault(f"v-{request.name}", size)
        if there < wanted.required_bytes or (wanted.limit_bytes and there > wanted.limit_bytes):
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, "it has another size")
        volume = MESSAGES["Volume"](capacity_bytes=there, volume_id=f"v-{request.name}")
        return MESSAGES["CreateVolumeResponse"](volume=volume)

    async def _delete(self, request: Any, context: Any) -> Any:
        if not request.volume_id:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "volume_id is missing")
        self.volumes.pop(request.volume_id, None)
        return MESSAGES["DeleteVolumeResponse"]()

    async def _validate(self, request: Any, context: Any) -> Any:
        if not request.volume_id or not request.volume_capabilities:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "volume_id and volume_capabilities are needed")
        if request.volume_id not in self.volumes:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such volume")
        confirmed = MESSAGES["Confirmed"](volume_capabilities=request.volume_capabilities)
        return MESSAGES["ValidateVolumeCapabilitiesResponse"](confirmed=confirmed)
