"""The two kinds of objects that hold configuration data, and the protocol of the stores that keep them."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from glasslet.api.configdata import ConfigMap, Secret
from glasslet.api.object import PodUID
from glasslet.kubeapi import paths
from glasslet.kubeapi.decoding import UndecodableObject
from glasslet.kubeapi.errors import NotDecoded, NotFound, Unavailable
from glasslet.kubeapi.reflector import HasMeta

Key = tuple[str, str]
"""Namespace and name."""


class Data(HasMeta, Protocol):
    """A ConfigMap or a Secret."""

    @property
    def immutable(self) -> bool | None: ...


T = TypeVar("T", bound=Data)
T_co = TypeVar("T_co", bound=Data, covariant=True)


class ObjectKind(Struct, Generic[T], frozen=True, kw_only=True):
    """A kind. Error messages use `word` (`secret "db" not found`), waits use `title` (`Secret default/db`)."""

    type: type[T]
    resource: str
    word: str
    title: str

    def path(self, key: Key) -> str:
        """Where one object is."""
        return paths.namespaced(key[0], self.resource, key[1])

    def not_found(self, key: Key) -> NotFound:
        """It does not exist, as far as is known here."""
        return NotFound(
            f"{self.title} {key[0]}/{key[1]}", f'{self.word} "{key[1]}" not found', code=404, reason="NotFound"
        )

    def missing(self, key: Key, undecodable: UndecodableObject | None) -> NotFound | NotDecoded:
        """Why a watch has no object: it does not exist, or it cannot be decoded."""
        if undecodable is None:
            return self.not_found(key)
        return NotDecoded(f"{self.title} {key[0]}/{key[1]}", undecodable)

    def not_registered(self, key: Key) -> Unavailable:
        """No pod on this node was known to need it."""
        return Unavailable(f"{self.title} {key[0]}/{key[1]}", f'object "{key[0]}"/"{key[1]}" not registered')


SECRETS = ObjectKind(type=Secret, resource="secrets", word="secret", title="Secret")
CONFIG_MAPS = ObjectKind(type=ConfigMap, resource="configmaps", word="configmap", title="ConfigMap")


class ObjectStore(Protocol[T_co]):
    """Keeps the objects of one kind that pods of this node need. An object is kept while a pod holds it."""

    def hold(self, key: Key, pod: PodUID) -> None:
        """The pod needs it from now on."""

    def release(self, key: Key, pod: PodUID) -> None:
        """The pod does not need it any more."""

    async def get(self, key: Key) -> T_co:
        """The object. Raises NotFound and other APIErrors; their `message` is fit for events."""

    async def run(self) -> None:
        """Keeps the objects current until cancelled."""
