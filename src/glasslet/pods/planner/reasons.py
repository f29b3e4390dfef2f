"""Why an action was chosen: the inputs that were looked at, and which of them tipped the choice. Pure."""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.lifecycle import Probe
from glasslet.api.pod import Pod
from glasslet.api.restarts import policy_of
from glasslet.runtime.model import ContainerPhase, ObservedContainer


class Reason(Struct, frozen=True):
    """One input of a choice. `tipped`: with another value of it the choice would have been another one."""

    name: str
    value: str
    tipped: bool = False


Reasons = tuple[Reason, ...]


def tipped(name: str, value: object) -> Reason:
    """An input that decided."""
    return Reason(name, str(value), True)


def beside(name: str, value: object) -> Reason:
    """An input that was looked at."""
    return Reason(name, str(value))


UNKNOWN_STATE = tipped("instance", "its state is unknown")
OTHER_RESOURCES = tipped("resources", "not what the container was given, and its resizePolicy wants a restart")


def failed_probe(kind: str, probe: Probe) -> Reason:
    """A probe that failed as often as it may."""
    return tipped(f"{kind} probe", f"failed {probe.failure_threshold or 3} times in a row")


def other_definition(container: Container) -> Reason:
    """An instance that was made of another definition of its container."""
    return tipped("definition", f"the instance was made of another one; image now {container.image}")


def instance_reason(last: ObservedContainer | None) -> Reason:
    """The newest instance of a container that is to be started."""
    if last is None:
        return tipped("instance", "there is none")
    if last.phase is ContainerPhase.EXITED:
        how = f"exited with code {last.exit_code}{' (' + last.reason + ')' if last.reason else ''}"
        return tipped("instance", how)
    if last.phase is ContainerPhase.CREATED:
        return tipped("instance", "was created and never started")
    return tipped("instance", "is killed first")


def policy_reason(container: Container, pod: Pod, last: ObservedContainer | None) -> Reason:
    """The policy by which a container is started again."""
    policy = policy_of(container, pod.spec)
    again = last is not None and last.phase is ContainerPhase.EXITED
    return Reason("restartPolicy", policy, again)
