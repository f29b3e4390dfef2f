"""RuntimeClasses: names of pods for handlers of the runtime (KEP-585). Few pods name one, so a class is read
when a sandbox needs it, instead of being watched."""

from __future__ import annotations

from urllib.parse import quote

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object
from glasslet.kubeapi.errors import APIError, NotFound
from glasslet.kubeapi.paths import RUNTIME_CLASSES
from glasslet.kubeapi.protocols import APIClient

_PATIENCE = 5.0
"""Seconds that a sandbox waits for an answer; then the last known one counts."""


class RuntimeClass(Object, frozen=True, kw_only=True):
    """`node.k8s.io/v1.RuntimeClass`, as much as a node needs: overhead and scheduling are put into pods by the API."""

    metadata: ObjectMeta = ObjectMeta()
    handler: str = ""


class RuntimeClasses:
    """Gives handlers by the name of a class."""

    def __init__(self, *, client: APIClient) -> None:
        self._client = client
        self._known: dict[str, str] = {}

    async def handler(self, name: str) -> str:
        """The class's handler; the last known one while the read fails. Raises NotFound, APIError."""
        path = f"{RUNTIME_CLASSES}/{quote(name, safe='')}"
        try:
            found = await self._client.get(path, RuntimeClass, timeout=_PATIENCE)
        except NotFound as error:
            self._known.pop(name, None)
            words = f'runtimeclass.node.k8s.io "{name}" not found'
            raise NotFound(error.request, words, code=error.code, reason=error.reason) from error
        except APIError:
            if name in self._known:
                return self._known[name]
            raise
        self._known[name] = found.handler
        return found.handler
