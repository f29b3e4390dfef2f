"""Sources of volumes made of files, as they need them. The cluster's side implements it; without an API server
`NoCluster` does."""

from __future__ import annotations

from typing import Protocol

from glasslet.api.configdata import ConfigMap, Secret
from glasslet.api.meta import LabelSelector
from glasslet.api.pod import Pod
from glasslet.api.volume import DownwardAPIVolumeFile
from glasslet.kubeapi.errors import Unavailable
from glasslet.kubeapi.objects.tokens import TokenFor


class Objects(Protocol):
    """ConfigMaps and Secrets (`kubeapi.objects.pod_objects`). Both raise APIError."""

    async def secret(self, namespace: str, name: str) -> Secret: ...
    async def config_map(self, namespace: str, name: str) -> ConfigMap: ...


class Tokens(Protocol):
    """Service account tokens (`kubeapi.objects.tokens`)."""

    async def get(self, wanted: TokenFor) -> str:
        """A token that is good for a while. Raises APIError."""


class Anchors(Protocol):
    """Trust anchors (`kubeapi.objects.trust_bundles`). Both give PEM and raise APIError."""

    async def by_name(self, name: str, *, optional: bool) -> bytes: ...
    async def by_signer(self, signer: str, labels: LabelSelector | None, *, optional: bool) -> bytes: ...


class FieldText(Protocol):
    """Text of a field of the pod or of a container's resources (`podspec.downward`)."""

    def __call__(self, item: DownwardAPIVolumeFile, pod: Pod, /) -> str:
        """Raises VolumeProblem for a field that is not offered."""


class NoCluster:
    """An agent on its own: nothing that lives in an API server can be had."""

    async def secret(self, namespace: str, name: str) -> Secret:
        """Never there."""
        raise _without_server(f"secret {namespace}/{name}")

    async def config_map(self, namespace: str, name: str) -> ConfigMap:
        """Never there."""
        raise _without_server(f"configmap {namespace}/{name}")

    async def get(self, wanted: TokenFor) -> str:
        """Never there."""
        raise _without_server(f"token of service account {wanted.namespace}/{wanted.service_account}")

    async def by_name(self, name: str, *, optional: bool) -> bytes:
        """Never there."""
        raise _without_server(f"ClusterTrustBundle {name}")

    async def by_signer(self, signer: str, labels: LabelSelector | None, *, optional: bool) -> bytes:
        """Never there."""
        raise _without_server(f"ClusterTrustBundles of {signer}")


def _without_server(what: str) -> Unavailable:
    return Unavailable(what, f"{what} needs an API server, and this agent runs without one")
