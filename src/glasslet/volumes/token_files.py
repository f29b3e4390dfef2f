"""Whose token a projected volume holds, and who may read it. Pure."""

from __future__ import annotations

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.volume import ServiceAccountTokenProjection
from glasslet.kubeapi.objects.tokens import TokenFor


def token_for(source: ServiceAccountTokenProjection, pod: Pod) -> TokenFor:
    """The token of a projection, bound to the pod."""
    return TokenFor(
        namespace=pod.metadata.namespace,
        service_account=pod.spec.service_account_name,
        pod=pod.metadata.name,
        uid=PodUID(pod.metadata.uid),
        audience=source.audience,
        expiration_seconds=source.expiration_seconds,
    )


def common_user(pod: Pod) -> int | None:
    """The user id that all containers of the pod run as by their spec; None if one has none, or they differ."""
    context = pod.spec.security_context
    default = context.run_as_user if context is not None else None
    spec = pod.spec
    users: set[int | None] = set()
    for group in (spec.init_containers, spec.containers, spec.ephemeral_containers):
        for container in group:
            own = container.security_context.run_as_user if container.security_context is not None else None
            users.add(default if own is None else own)
    return users.pop() if len(users) == 1 else None
