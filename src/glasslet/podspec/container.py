"""The runtime's specification of a container."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.host.files.layout import UnsafePath, container_log
from glasslet.podspec.environment import environment
from glasslet.podspec.errors import container_error
from glasslet.podspec.expansion import TooLong, expand_all
from glasslet.podspec.labels import container_annotations, container_labels
from glasslet.podspec.mounts import container_devices, container_mounts
from glasslet.podspec.request import ContainerRequest
from glasslet.podspec.resources import container_resources, with_share
from glasslet.podspec.security import container_security
from glasslet.runtime.spec import ContainerSpec


def container_spec(request: ContainerRequest) -> ContainerSpec:
    """One instance of a container. Raises ConfigError, whose reason and message the API shows."""
    pod, container, given = request.pod, request.container, request.devices
    envs = environment(request)
    mounts = container_mounts(request, envs)
    return ContainerSpec(
        name=container.name,
        attempt=request.attempt,
        image=request.image.id,
        user_specified_image=container.image,
        command=_expanded("command", container.command, envs),
        args=_expanded("args", container.args, envs),
        working_dir=container.working_dir,
        envs=(*given.envs, *envs.items()),
        mounts=(*given.mounts, *mounts),
        devices=(*given.devices, *container_devices(request)),
        cdi_devices=given.cdi_devices,
        labels=container_labels(pod, container),
        annotations={**given.annotations, **container_annotations(pod, container, request.attempt)},
        log_path=_log_path(request),
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
        resources=with_share(container_resources(pod, container, request.node), request.share),
        security=container_security(request),
        stop_signal=(container.lifecycle.stop_signal or "") if container.lifecycle is not None else "",
    )


def _expanded(field: str, texts: tuple[str, ...], envs: Mapping[str, str]) -> tuple[str, ...]:
    try:
        return expand_all(texts, envs)
    except TooLong as error:
        raise container_error(f"{field}{error}") from None


def _log_path(request: ContainerRequest) -> str:
    try:
        return container_log(request.container.name, request.attempt)
    except UnsafePath as error:
        raise container_error(error.problem) from error
