"""Which credentials a pull may use: those of the pod's imagePullSecrets first, then the node's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec.structs import replace

from glasslet.api.configdata import Secret
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.kubeapi.errors import APIError
from glasslet.runtime.images.keyring import BadKeyring, Keyring, keyring_of, parse_config_json, parse_dockercfg
from glasslet.runtime.images.reference import InvalidImageName, parse_image_name
from glasslet.runtime.protocols import AuthSource, RegistryAuth

_FORMS = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson", parse_config_json),
    "kubernetes.io/dockercfg": (".dockercfg", parse_dockercfg),
}


class Secrets(Protocol):
    """Secrets of pods (`kubeapi.objects.pod_objects`)."""

    async def secret(self, namespace: str, name: str) -> Secret:
        """Raises APIError."""


class NodeCredentials(Protocol):
    """The node's own (`keyring_files`)."""

    def current(self) -> Keyring: ...


class SecretEvents(Protocol):
    """Where API events about a pod go."""

    def __call__(self, pod: PodRef, kind: str, reason: str, message: str, /) -> None: ...


class PullCredentials:
    """Finds the credentials for an image of a pod. `secrets` None: there is no API server."""

    def __init__(self, *, secrets: Secrets | None, node: NodeCredentials, events: SecretEvents) -> None:
        self._secrets = secrets
        self._node = node
        self._events = events

    async def matching(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        """All that fit, in the order of the tries; none means an anonymous pull. A Secret that cannot be read is an
        event and left out."""
        try:
            repository = parse_image_name(image).repository
        except InvalidImageName:
            return ()
        own = await self._pod_keyring(pod) if pod.spec.image_pull_secrets else Keyring()
        return (*own.matching(repository), *self._node.current().matching(repository))

    async def _pod_keyring(self, pod: Pod) -> Keyring:
        configs: list[Mapping[str, RegistryAuth]] = []
        missing: list[str] = []
        unreadable: list[str] = []
        for name in (reference.name for reference in pod.spec.image_pull_secrets if reference.name):
            try:
                configs.append(await self._config(pod.metadata.namespace, name))
            except APIError:
                missing.append(name)
            except BadKeyring as problem:
                unreadable.append(f"{name}: {problem}")
        if missing:
            self._tell(pod, f"Unable to retrieve some image pull secrets ({', '.join(missing)})")
        if unreadable:
            self._tell(pod, f"Unable to read some image pull secrets ({', '.join(unreadable)})")
        return keyring_of(configs)

    async def _config(self, namespace: str, name: str) -> Mapping[str, RegistryAuth]:
        if self._secrets is None:
            raise BadKeyring("needs an API server, and this agent runs without one")
        secret = await self._secrets.secret(namespace, name)
        key, parse = _FORMS.get(secret.type, ("", parse_config_json))
        data = secret.data.get(key, b"")
        # Secrets of other types are no credentials: as upstream, nothing is said about them.
        meta = secret.metadata
        source = AuthSource(kind="Secret", uid=meta.uid, namespace=meta.namespace, name=meta.name)
        return {place: replace(auth, source=source) for place, auth in (parse(data) if data else {}).items()}

    def _tell(self, pod: Pod, what: str) -> None:
        message = f"{what}; attempting to pull the image may not succeed."
        self._events(pod_ref(pod), "Warning", "FailedToRetrieveImagePullSecret", message)
