"""Calls of DRA drivers: each is a wait that names driver, method and claims, has a deadline, and fails in one way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Protocol, TypeVar

from google.protobuf.message import Message
from grpc import StatusCode
from grpc.aio import AioRpcError
from msgspec import Struct

from glasslet.dra._generated import dra_pb2 as messages
from glasslet.dra.plugins import DRAPlugins
from glasslet.exchange.claims import DeviceClaimProblem
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import code_in_words, in_rpc_words

CALL_SECONDS = 45.0
"""Of one call, as upstream."""
PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"
_MOST_SAID = 2048
"""Characters of a driver's words that are kept."""
_NOT_DECODED = "the driver's answer cannot be decoded"
"""The gRPC library hands on None for such an answer."""

M = TypeVar("M", bound=Message)


class DRACallMetrics(Protocol):
    """`dra_grpc_operations_duration_seconds`."""

    def called(self, driver: str, method: str, code: str, seconds: float) -> None: ...


class DRACallFailed(DeviceClaimProblem):
    """A driver's answer is an error, or there is none."""


class ClaimId(Struct, frozen=True, kw_only=True, order=True):
    """A ResourceClaim: its name is used again after a deletion, its UID is not."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PreparedDevice(Struct, frozen=True, kw_only=True):
    """A device as its driver prepared it. `requests`: those of the claim that it is for; empty: all of them."""

    pool: str
    device: str
    requests: tuple[str, ...] = ()
    cdi_ids: tuple[str, ...] = ()


class DRACalls:
    """Calls the newest connected plugin of a driver. Both methods raise DriverNotRegistered, DRACallFailed."""

    def __init__(self, *, plugins: DRAPlugins, recorder: Recorder, metrics: DRACallMetrics | None = None) -> None:
        self._plugins = plugins
        self._recorder = recorder
        self._metrics = metrics

    async def prepare(
        self, driver: str, claims: Sequence[ClaimId]
    ) -> tuple[Mapping[str, tuple[PreparedDevice, ...]], DRACallFailed | None]:
        """Devices by the UIDs of claims that were prepared, and what went wrong with the others."""
        request = messages.NodePrepareResourcesRequest(claims=_named(claims))
        answer = await self._call(driver, PREPARE, request, messages.NodePrepareResourcesResponse, claims)
        failed = _failed(driver, PREPARE, claims, {uid: one.error for uid, one in answer.claims.items()})
        prepared = {
            claim.uid: tuple(_device(device) for device in answer.claims[claim.uid].devices)
            for claim in claims
            if claim.uid in answer.claims and not answer.claims[claim.uid].error
        }
        return prepared, failed

    async def unprepare(self, driver: str, claims: Sequence[ClaimId]) -> None:
        """Gives the claims' devices back."""
        request = messages.NodeUnprepareResourcesRequest(claims=_named(claims))
        answer = await self._call(driver, UNPREPARE, request, messages.NodeUnprepareResourcesResponse, claims)
        failed = _failed(driver, UNPREPARE, claims, {uid: one.error for uid, one in answer.claims.items()})
        if failed is not None:
            raise failed

    async def _call(self, driver: str, method: str, request: Message, answer: type[M], claims: Sequence[ClaimId]) -> M:
        plugin = self._plugins.choose(driver)
        path = f"/{plugin.service}/{method}"
        began, code = monotonic(), StatusCode.OK
        try:
            with self._recorder.wait(WaitKind.DRA_CALL, on=call_words(driver, method, claims)):
                found: M | None = await plugin.channel.unary_unary(
                    path, request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString
                )(request, timeout=CALL_SECONDS)
                if found is None:
                    code = StatusCode.INTERNAL
                    raise DRACallFailed(f"{method}: {in_rpc_words(code.name, _NOT_DECODED)}", driver=driver)
        except AioRpcError as error:
            code = error.code()
            said = in_rpc_words(code.name, shortened(error.details() or ""))
            raise DRACallFailed(f"{method}: {said}", driver=driver) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not plugin.removed or task is None or task.cancelling():
                code = StatusCode.CANCELLED
                raise
            # The library cancels the calls of a connection that it closes.
            code = StatusCode.UNAVAILABLE
            said = in_rpc_words(code.name, "the plugin was removed during the call")
            raise DRACallFailed(f"{method}: {said}", driver=driver) from None
        finally:
            if self._metrics is not None:
                self._metrics.called(driver, path, code_in_words(code.name), monotonic() - began)
        return found


def call_words(driver: str, method: str, claims: Iterable[ClaimId]) -> str:
    """The wait in words: `DRA driver d.example: NodePrepareResources of claim default/gpu`."""
    return f"DRA driver {driver}: {method} of claim {', '.join(map(str, claims))}"


def shortened(text: str) -> str:
    """A driver's words of bounded length."""
    return text if len(text) <= _MOST_SAID else f"{text[:_MOST_SAID]}..."


def _failed(driver: str, method: str, claims: Sequence[ClaimId], said: Mapping[str, str]) -> DRACallFailed | None:
    """What is wrong with an answer; `said`: errors by the UIDs in it, "" for none."""
    names = {claim.uid: claim.name for claim in claims}
    for uid, error in said.items():
        if uid not in names:
            return DRACallFailed(f"{method} returned result for unknown claim UID {shortened(uid)}", driver=driver)
        if error:
            text = f"{method} failed for ResourceClaim {names[uid]}: {shortened(error)}"
            return DRACallFailed(text, driver=driver)
    if skipped := len(names.keys() - said.keys()):
        return DRACallFailed(f"{method} skipped {skipped} ResourceClaims", driver=driver)
    return None


def _named(claims: Iterable[ClaimId]) -> list[messages.Claim]:
    return [messages.Claim(namespace=one.namespace, uid=one.uid, name=one.name) for one in claims]


def _device(device: messages.Device) -> PreparedDevice:
    return PreparedDevice(
        pool=device.pool_name,
        device=device.device_name,
        requests=tuple(device.request_names),
        cdi_ids=tuple(device.cdi_device_ids),
    )
