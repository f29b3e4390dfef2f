"""ClusterTrustBundles: certificates that the cluster's administrators publish for all pods.

The watch begins when a pod first needs one: most clusters have none.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextvars
import re
from collections.abc import Callable, Iterable, Mapping

from glasslet.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from glasslet.api.object import Object
from glasslet.concurrency.supervision import Supervisor
from glasslet.kubeapi.errors import NotDecoded, NotFound, Unavailable
from glasslet.kubeapi.protocols import APIClient
from glasslet.kubeapi.reflector import Reflector
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

PATH = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles"
_FIRST_LIST = 5.0
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----")
_LINE = 64


class ClusterTrustBundleSpec(Object, frozen=True, kw_only=True):
    """`certificates.k8s.io/v1beta1.ClusterTrustBundleSpec`."""

    signer_name: str = ""
    trust_bundle: str = ""


class ClusterTrustBundle(Object, frozen=True, kw_only=True):
    """`certificates.k8s.io/v1beta1.ClusterTrustBundle`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterTrustBundleSpec = ClusterTrustBundleSpec()


class TrustBundles:
    """Gives trust anchors by a bundle's name or by signer and labels. `on_change`: some bundle changed."""

    def __init__(self, *, client: APIClient, recorder: Recorder, on_change: Callable[[], None]) -> None:
        self._recorder = recorder
        self._on_change = on_change
        self._supervisor = Supervisor()
        self._watching = False
        self._reflector = Reflector(
            client=client,
            path=PATH,
            kind=ClusterTrustBundle,
            on_change=lambda change: self._changed(),
            recorder=recorder,
        )

    async def by_name(self, name: str, *, optional: bool) -> bytes:
        """The anchors of one bundle as PEM; nothing if it is not there and optional. Raises NotFound, Unavailable."""
        bundle = (await self._bundles()).get("", name)
        if bundle is not None:
            return trust_anchors([bundle])
        if (bad := self._reflector.undecodable("", name)) is not None:
            raise NotDecoded(f"ClusterTrustBundle {name}", bad)
        if optional:
            return b""
        words = f'while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "{name}" not found'
        raise NotFound(f"ClusterTrustBundle {name}", words, code=404, reason="NotFound")

    async def by_signer(self, signer: str, labels: LabelSelector | None, *, optional: bool) -> bytes:
        """The anchors of all bundles of a signer that have these labels; no selector matches none, an empty one all."""
        bundles = (await self._bundles()).all()
        chosen = [
            one
            for one in bundles
            if one.spec.signer_name == signer and labels is not None and selects(labels, one.metadata.labels)
        ]
        if chosen or optional:
            return trust_anchors(chosen)
        words = "combination of signerName and labelSelector matched zero ClusterTrustBundles"
        raise NotFound(f"ClusterTrustBundles of {signer}", words, code=404, reason="NotFound")

    async def run(self) -> None:
        """Watches from the first read on, until cancelled."""
        await self._supervisor.run()

    async def _bundles(self) -> Reflector[ClusterTrustBundle]:
        if not self._watching:
            self._watching = True
            # In a context of its own: no pod's record is to hold the requests of this watch.
            contextvars.Context().run(self._supervisor.start, "watch of ClusterTrustBundles", self._reflector.run)
        if not self._reflector.synced.is_set():
            try:
                with self._recorder.wait(WaitKind.API_CALL, on="first list of ClusterTrustBundles"):
                    async with asyncio.timeout(_FIRST_LIST):
                        await self._reflector.synced.wait()
            except TimeoutError:
                words = "ClusterTrustBundle informer has not yet synced"
                raise Unavailable("ClusterTrustBundles", words) from None
        return self._reflector

    def _changed(self) -> None:
        if self._reflector.synced.is_set():
            self._on_change()


def trust_anchors(bundles: Iterable[ClusterTrustBundle]) -> bytes:
    """Every certificate once, in an order that depends on nothing but the certificates."""
    found: set[bytes] = set()
    for bundle in bundles:
        for block in _BLOCK.findall(bundle.spec.trust_bundle):
            try:
                found.add(base64.b64decode("".join(block.split()), validate=True))
            except binascii.Error:
                # The API server checks bundles; a block that is no base64 is left out, and the others stay trusted.
                continue
    return b"".join(_pem(certificate) for certificate in sorted(found))


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether the labels fit."""
    equal = all(labels.get(name) == value for name, value in selector.match_labels.items())
    return equal and all(_fits(requirement, labels) for requirement in selector.match_expressions)


def _fits(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    match requirement.operator:
        case "In":
            return labels.get(requirement.key) in requirement.values
        case "NotIn":
            return labels.get(requirement.key) not in requirement.values
        case "Exists":
            return requirement.key in labels
        case "DoesNotExist":
            return requirement.key not in labels
    return False


def _pem(certificate: bytes) -> bytes:
    text = base64.b64encode(certificate).decode()
    lines = [text[start : start + _LINE] for start in range(0, len(text), _LINE)]
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]).encode()
