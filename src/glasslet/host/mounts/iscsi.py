"""Disks of iSCSI targets: logging in and out by iscsiadm(8), finding the device.

All of this may hang on a sick target: call it from `HostThreads` only. Secrets go to the program and nowhere else.
"""

from __future__ import annotations

import errno
import glob
import logging
import os
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from glasslet.host.mounts.program import Ended, run_program

_log = logging.getLogger(__name__)

DEVICE_SECONDS = 30.0
"""How long a device may take to appear after the login."""

_SESSION_EXISTS = 15
_NOTHING_THERE = (2, 21)
_DISCOVERY = "discovery.sendtargets.auth"
_SESSION = "node.session.auth"
_KEYS = ("username", "password", "username_in", "password_in")


class ISCSIFailed(OSError):
    """No device, or a session that does not end. The text holds what the program said, never a secret."""

    def __init__(self, problem: str) -> None:
        super().__init__(errno.EIO, problem)


class ISCSITarget(Struct, frozen=True, kw_only=True):
    """One disk of one target. `portals` are `address:port`. `base_interface`: what `interface` is made from, where the
    two differ, with `initiator_name`."""

    portals: tuple[str, ...]
    iqn: str
    lun: int
    interface: str = "default"
    base_interface: str = "default"
    initiator_name: str = ""


class Chap(Struct, frozen=True, kw_only=True):
    """Credentials of the node for the target. `repr` shows no secret."""

    discovery: bool = False
    session: bool = False
    secrets: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"Chap(discovery={self.discovery}, session={self.session})"


def log_in(target: ISCSITarget, chap: Chap, *, root: str = "") -> str:
    """The device of the disk, after logging in at every portal. One path is enough; of several the multipath device is
    taken. `root` stands before /dev and /sys. Raises ISCSIFailed."""
    if target.interface != target.base_interface:
        _make_interface(target)
    found: list[str] = []
    problem = ""
    for portal in target.portals:
        try:
            _log_in_at(portal, target, chap)
            _scan(target, root)
            found.append(_wait_for(_device(portal, target, root)))
        except ISCSIFailed as error:
            problem = error.strerror or ""
    if not found:
        raise ISCSIFailed(f"failed to get any path for iscsi disk, last err seen:\n{problem}")
    return _multipath(found, root) or found[0]


def log_out(target: ISCSITarget, *, root: str = "") -> None:
    """Removes the disk, ends the sessions and deletes the target's record. Raises ISCSIFailed."""
    drop_disk(target, root=root)
    for portal in target.portals:
        session = ("-m", "node", "-p", portal, "-T", target.iqn)
        for end in (("--logout",), ("-o", "delete")):
            ended = _iscsiadm(*session, *end, "-I", target.interface)
            if ended.problem and ended.code not in _NOTHING_THERE:
                raise ISCSIFailed(f"iscsi: failed to detach disk Error: {ended.output or ended.problem}")
    if target.interface != target.base_interface:
        _iscsiadm("-m", "iface", "-I", target.interface, "-o", "delete")


def drop_disk(target: ISCSITarget, *, root: str = "") -> None:
    """Removes the disk's devices from the kernel; the sessions stay, for other disks of the target."""
    for portal in target.portals:
        _delete(os.path.basename(os.path.realpath(_device(portal, target, root))), root)


def _log_in_at(portal: str, target: ISCSITarget, chap: Chap) -> None:
    database = ("-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", target.interface)
    _iscsiadm(*database, "-o", "new")
    if chap.discovery:
        _authenticate(database, _DISCOVERY, chap, f"iscsi: failed to update discoverydb to portal {portal}")
    found = _iscsiadm(*database, "--discover")
    if found.problem:
        _iscsiadm(*database, "-o", "delete")
        raise ISCSIFailed(
            f"iscsi: failed to sendtargets to portal {portal} output: {found.output}, err {found.problem}"
        )
    node = ("-m", "node", "-p", portal, "-T", target.iqn, "-I", target.interface)
    # Only this disk is scanned for: other disks of the target could vanish unnoticed.
    _iscsiadm(*node, "-o", "update", "-n", "node.session.scan", "-v", "manual")
    if chap.session:
        _authenticate(node, _SESSION, chap, f"iscsi: failed to update iscsi node to portal {portal}")
    ended = _iscsiadm(*node, "--login")
    if ended.problem and ended.code != _SESSION_EXISTS:
        _iscsiadm(*node, "-o", "delete")
        raise ISCSIFailed(f"iscsi: failed to attach disk: Error: {ended.output} ({ended.problem})")
    # A reboot must not wait for this target.
    _iscsiadm(*node, "-o", "update", "-n", "node.startup", "-v", "manual")


def _authenticate(record: Sequence[str], section: str, chap: Chap, failed: str) -> None:
    values = {f"{section}.authmethod": "CHAP"}
    values |= {name: chap.secrets[name] for key in _KEYS if chap.secrets.get(name := f"{section}.{key}")}
    for name, value in values.items():
        ended = _iscsiadm(*record, "-o", "update", "-n", name, "-v", value)
        if ended.problem:
            raise ISCSIFailed(f"{failed} error: {name}: {ended.problem}")


def _make_interface(target: ISCSITarget) -> None:
    shown = _iscsiadm("-m", "iface", "-I", target.base_interface, "-o", "show")
    if shown.problem:
        raise ISCSIFailed(f"iscsi: failed to show iface records: {shown.output} ({shown.problem})")
    values = dict(
        line.split(" = ", 1)
        for line in shown.output.split("\n")
        if line.startswith("iface.") and " = " in line and "<empty>" not in line
    )
    values.pop("iface.iscsi_ifacename", None)
    values["iface.initiatorname"] = target.initiator_name
    made = _iscsiadm("-m", "iface", "-I", target.interface, "-o", "new")
    if made.problem and made.code != _SESSION_EXISTS:
        raise ISCSIFailed(f"iscsi: failed to create new iface: {made.output} ({made.problem})")
    for name, value in sorted(values.items()):
        changed = _iscsiadm("-m", "iface", "-I", target.interface, "-o", "update", "-n", name, "-v", value)
        if changed.problem:
            raise ISCSIFailed(f"iscsi: failed to update iface records: {changed.output} ({changed.problem})")


def _scan(target: ISCSITarget, root: str) -> None:
    """Scans for the disk in the sessions of the target."""
    for name in glob.glob(f"{root}/sys/class/iscsi_session/session*/targetname"):
        with open(name, encoding="utf-8") as file:
            if file.read().strip() != target.iqn:
                continue
        way = os.path.realpath(os.path.dirname(name)).split("/")
        for host in (part for part in way if part.startswith("host") and part[4:].isdigit()):
            _write(f"{root}/sys/class/scsi_host/{host}/scan", f"0 0 {target.lun}")


def _device(portal: str, target: ISCSITarget, root: str) -> str:
    address = portal.replace("[", "").replace("]", "")
    return f"{root}/dev/disk/by-path/ip-{address}-iscsi-{target.iqn}-lun-{target.lun}"


def _wait_for(device: str) -> str:
    deadline = time.monotonic() + DEVICE_SECONDS
    while not os.path.exists(device):
        if time.monotonic() >= deadline:
            raise ISCSIFailed(f"Timed out waiting for device at path {device} after {DEVICE_SECONDS:g}s")
        time.sleep(0.2)
    return device


def _multipath(devices: Sequence[str], root: str) -> str:
    """The mapped device that stands on one of these, "" without one."""
    for device in devices:
        name = os.path.basename(os.path.realpath(device))
        for holder in glob.glob(f"{root}/sys/block/{name}/holders/dm-*"):
            return f"{root}/dev/{os.path.basename(holder)}"
    return ""


def _delete(name: str, root: str) -> None:
    path = f"{root}/sys/block/{name}/device/delete"
    if os.path.exists(path):
        _write(path, "1")


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        _log.warning("iSCSI bus cannot be written to", extra={"path": path, "error": str(error)})


def _iscsiadm(*arguments: str) -> Ended:
    return run_program(("iscsiadm", *arguments))
