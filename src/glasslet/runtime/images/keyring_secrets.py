"""Which credentials a pull may use: those of the pod's imagePullSecrets first, then the node's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec.structs import replace

from glasslet.api.configdata import Secret
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.kubeapi.errors import APIError
from glasslet.runtime.images.keyring import BadKeyring, Keyring, keyring_of, parse_config_json, parse_dockercfg
from glasslet.runtime.images.reference import InvalidImageName, parse_image_name
from glasslet.runtime.protocols import AuthSource, RegistryAuth

_FORMS = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson", parse_config_json),
    "kubernetes.io/dockercfg": (".dockercfg", parse_dockercfg),
}


_AT_ONCE = 64 * 1024
"""Bytes of Secrets that are searched on the event loop. A pod can name Secrets with tens of thousands of patterns."""


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
        self._threads = OwnThreads("pull Secrets", limit=2)

    async def matching(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        """All that fit, in the order of the tries; none means an anonymous pull. A Secret that cannot be read is an
        event and left out."""
        try:
            repository = parse_image_name(image).repository
        except InvalidImageName:
            return ()
        own = await self._of_pod(pod, repository) if pod.spec.image_pull_secrets else ()
        return (*own, *self._node.current().matching(repository))

    async def _of_pod(self, pod: Pod, repository: str) -> tuple[RegistryAuth, ...]:
        secrets: list[tuple[str, Secret]] = []
        missing: list[str] = []
        unreadable: list[str] = []
        for name in (reference.name for reference in pod.spec.image_pull_secrets if reference.name):
            if self._secrets is None:
                unreadable.append(f"{name}: needs an API server, and this agent runs without one")
                continue
            try:
                secrets.append((name, await self._secrets.secret(pod.metadata.namespace, name)))
            except APIError:
                missing.append(name)
        if sum(len(_content(secret)) for _, secret in secrets) <= _AT_ONCE:
            found, damaged = _search(secrets, repository)
        else:
            found, damaged = await self._threads.run(_search, secrets, repository)
        unreadable += damaged
        if missing:
            self._tell(pod, f"Unable to retrieve some image pull secrets ({', '.join(missing)})")
        if unreadable:
            self._tell(pod, f"Unable to read some image pull secrets ({', '.join(unreadable)})")
        return found

    def _tell(self, pod: Pod, what: str) -> None:
        message = f"{what}; attempting to pull the image may not succeed."
        self._events(pod_ref(pod), "Warning", "FailedToRetrieveImagePullSecret", message)


def _search(secrets: Iterable[tuple[str, Secret]], repository: str) -> tuple[tuple[RegistryAuth, ...], list[str]]:
    """The credentials that fit, and the Secrets that cannot be read, each with the reason."""
    configs: list[Mapping[str, RegistryAuth]] = []
    unreadable: list[str] = []
    for name, secret in secrets:
        try:
            configs.append(_config(secret))
        except BadKeyring as problem:
            unreadable.append(f"{name}: {problem}")
    return keyring_of(configs).matching(repository), unreadable


def _content(secret: Secret) -> bytes:
    # Secrets of other types are no credentials: as upstream, nothing is said about them.
    form = _FORMS.get(secret.type)
    return secret.data.get(form[0], b"") if form is not None else b""


def _config(secret: Secret) -> Mapping[str, RegistryAuth]:
    data = _content(secret)
    if not data:
        return {}
    _, parse = _FORMS[secret.type]
    meta = secret.metadata
    source = AuthSource(kind="Secret", uid=meta.uid, namespace=meta.namespace, name=meta.name)
    return {place: replace(auth, source=source) for place, auth in parse(data).items()}
