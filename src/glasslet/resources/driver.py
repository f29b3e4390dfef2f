"""The choice of the cgroup driver: the runtime's if it reports one, else the configured one. Pure."""

from __future__ import annotations

from glasslet.resources.node_cgroups import CgroupSetupFailed

SYSTEMD, CGROUPFS = "systemd", "cgroupfs"


def choose_driver(*, configured: str, of_runtime: str | None, systemd_runs: bool) -> tuple[str, str]:
    """Returns the driver and a remark for the operator ("": none). `of_runtime` None: it reports none. Raises
    CgroupSetupFailed for a driver that this agent lacks."""
    wanted = of_runtime or (SYSTEMD if configured == SYSTEMD else CGROUPFS)
    if wanted != SYSTEMD:
        return CGROUPFS, ""
    if of_runtime is None and not systemd_runs:
        return CGROUPFS, "cgroupDriver systemd without systemd on this machine: cgroupfs is used"
    said = "the container runtime uses" if of_runtime else "cgroupDriver (--cgroup-driver) is"
    raise CgroupSetupFailed(
        f'{said} "{SYSTEMD}", which this version does not support yet, want "{CGROUPFS}": set it in both the kubelet '
        "and the container runtime, or set cgroupsPerQOS to false"
    )
