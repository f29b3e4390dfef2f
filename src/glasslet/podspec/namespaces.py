"""Kernel namespaces that a pod and its containers share."""

from __future__ import annotations

from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.podspec.errors import ConfigError
from glasslet.podspec.request import UserNamespace
from glasslet.runtime.spec import NamespaceMode, Namespaces


def namespaces(
    pod: Pod,
    *,
    user_namespace: UserNamespace | None,
    runtime_handler: str,
    reason: str,
    target: ContainerID | None = None,
) -> Namespaces:
    """The namespaces of a pod's sandbox or of one container. `target` is the container whose processes an ephemeral one
    shares. Raises ConfigError with `reason` for `hostUsers: false` where the node cannot do that."""
    spec = pod.spec
    pid = _pid_mode(pod)
    joins = target is not None and pid is NamespaceMode.CONTAINER
    wants_users = spec.host_users is False
    if wants_users and user_namespace is None:
        raise ConfigError(reason, _no_user_namespaces(runtime_handler))
    return Namespaces(
        network=NamespaceMode.NODE if spec.host_network else NamespaceMode.POD,
        pid=NamespaceMode.TARGET if joins else pid,
        ipc=NamespaceMode.NODE if spec.host_ipc else NamespaceMode.POD,
        target_id=target if joins and target is not None else "",
        user_mode=NamespaceMode.POD if wants_users else NamespaceMode.NODE,
        uids=user_namespace.uids if wants_users and user_namespace is not None else (),
        gids=user_namespace.gids if wants_users and user_namespace is not None else (),
    )


def _pid_mode(pod: Pod) -> NamespaceMode:
    if pod.spec.host_pid:
        return NamespaceMode.NODE
    return NamespaceMode.POD if pod.spec.share_process_namespace else NamespaceMode.CONTAINER


def _no_user_namespaces(runtime_handler: str) -> str:
    subject = f'RuntimeClass handler "{runtime_handler}"' if runtime_handler else "runtime"
    return f"can't set `spec.hostUsers: false`, {subject} does not support user namespaces"
