"""Resource claims of a pod, as they pass to its worker and to the pod resources API."""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef


class DeviceClaimProblem(Exception):
    """The claims of a pod are not prepared, or not given back; the text is upstream's. `driver`: the one that failed
    or is missing, "" for none."""

    def __init__(self, text: str, *, driver: str = "") -> None:
        super().__init__(text)
        self.driver = driver

    @property
    def why(self) -> str:
        """The text, with the driver's name."""
        return f"DRA driver {self.driver}: {self}" if self.driver and self.driver not in str(self) else str(self)


class ClaimedDevice(Struct, frozen=True, kw_only=True):
    """A device of a claim. `cdi_ids`: its names for the runtime (CDI, `vendor/class=name`)."""

    driver: str
    pool: str
    device: str
    cdi_ids: tuple[str, ...] = ()


class ContainerClaim(Struct, frozen=True, kw_only=True):
    """What a container has of one ResourceClaim."""

    namespace: str
    name: str
    devices: tuple[ClaimedDevice, ...] = ()


class NoDeviceClaims:
    """Implements `pods.collaborators.ResourceClaims` without such: a pod must not run without the
    devices that it claims."""

    async def prepare(self, pod: Pod) -> None:
        """Refuses pods with claims."""
        names = [claim.name for claim in pod.spec.resource_claims]
        if names:
            raise DeviceClaimProblem(
                f"this kubelet has no dynamic resource allocation for resource claims {', '.join(names)}"
            )

    def used_by(self, pod: PodRef) -> bool:
        """No pod has any."""
        return False

    async def unprepare(self, pod: PodRef) -> None:
        """There is nothing to give back."""

    def cdi_ids(self, pod: Pod, container: Container) -> tuple[str, ...]:
        """No devices."""
        return ()

    def claims_of(self, pod: Pod, container: Container) -> tuple[ContainerClaim, ...]:
        """None."""
        return ()
