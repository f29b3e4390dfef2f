"""The runtime handler that a pod runs under (runtimeClassName), and the ids that it gets there (hostUsers)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.host.user_ids import NoUserIds, UserIds
from glasslet.kubeapi.errors import APIError, NotFound
from glasslet.podspec.errors import sandbox_error
from glasslet.podspec.request import UserNamespace
from glasslet.runtime.model import RuntimeHandler
from glasslet.runtime.spec import IdMapping


class Classes(Protocol):
    """RuntimeClasses of the API (`kubeapi.objects.runtime_classes`)."""

    async def handler(self, name: str) -> str:
        """The class's handler. Raises NotFound, APIError."""


class PodRuntimeHandlers:
    """Implements `collaborators.RuntimeHandlers`.

    `classes`: None without an API server. `handlers`: what the runtime says of itself, () for one that says nothing.
    `ids`: None while gate UserNamespacesSupport is off, NoUserIds where this node has none to give.
    """

    def __init__(
        self,
        *,
        classes: Classes | None,
        handlers: Callable[[], Sequence[RuntimeHandler]],
        ids: UserIds | NoUserIds | None,
    ) -> None:
        self._classes = classes
        self._handlers = handlers
        self._ids = ids

    async def handler(self, pod: Pod) -> str:
        """The handler's name, "" for the default one. Raises ConfigError."""
        name = pod.spec.runtime_class_name
        if not name:
            return ""
        if self._classes is None:
            raise sandbox_error(f"failed to lookup RuntimeClass {name}: this kubelet runs without an API server")
        try:
            return await self._classes.handler(name)
        except NotFound as error:
            raise sandbox_error(error.message) from error
        except APIError as error:
            raise sandbox_error(f"failed to lookup RuntimeClass {name}: {error.message}") from error

    def user_namespace(self, pod: Pod, handler: str) -> UserNamespace | None:
        """The pod's ids; None for a pod that uses the node's. Raises ConfigError."""
        host_users = pod.spec.host_users
        if host_users is None:
            return None
        if self._ids is None:
            raise sandbox_error('the feature gate "UserNamespacesSupport" is disabled: can\'t set spec.HostUsers')
        if host_users:
            return None
        self._require_support(handler)
        return _own_ids(pod, self._ids)

    def release(self, ref: PodRef) -> None:
        """The pod ended: its ids are free again."""
        if isinstance(self._ids, UserIds):
            self._ids.release(ref.uid)

    def _require_support(self, handler: str) -> None:
        found = {one.name: one for one in self._handlers()}
        one = found.get(handler)
        if one is not None and one.user_namespaces:
            return
        who = f'RuntimeClass handler "{handler}"' if handler else "runtime"
        unknown = f': the handler "{handler}" is not known' if found and one is None else ""
        raise sandbox_error(f"can't set `spec.hostUsers: false`, {who} does not support user namespaces{unknown}")


def _own_ids(pod: Pod, ids: UserIds | NoUserIds) -> UserNamespace:
    try:
        if isinstance(ids, NoUserIds):
            raise ids
        first = ids.ensure(PodUID(pod.metadata.uid))
    except NoUserIds as error:
        raise sandbox_error(f"user namespace: {error}") from error
    except OSError as error:
        raise sandbox_error(f"user namespace: its file cannot be used: {error.strerror}") from error
    mapping = (IdMapping(host_id=first, container_id=0, length=ids.per_pod),)
    return UserNamespace(uids=mapping, gids=mapping)
