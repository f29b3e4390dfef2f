"""What would behave differently once glasslet replaces the Go kubelet of a node. Pure: from read facts to a list.

stop        do not replace before this is mended: pods would be hurt, or the agent would not start
differ      works, but not as before
taken over  state of the Go kubelet that glasslet goes on with
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from glasslet.config.loading import Loaded
from glasslet.config.problem import ConfigProblem
from glasslet.config.replacement.facts import NodeSetUp
from glasslet.config.without_effect import FIELDS, KUBELET_GATES, OPTIONS, SAME_UPSTREAM
from glasslet.version import KUBERNETES_VERSION


class Weight(StrEnum):
    """How much a difference matters, worst first."""

    STOP = "stop"
    DIFFER = "differ"
    TAKEN_OVER = "taken over"


class Difference(Struct, frozen=True, kw_only=True):
    """One line of the answer. `remedy`: what to do, "" for nothing; `origin`: where the setting comes from."""

    weight: Weight
    subject: str
    text: str
    remedy: str = ""
    origin: str = ""


SERVED_VOLUMES = frozenset(
    f"kubernetes.io~{name}"
    for name in (
        *("configmap", "csi", "downward-api", "empty-dir", "host-path", "iscsi", "image", "local-volume", "nfs"),
        *("projected", "secret"),
    )
)
"""Folders of volume plugins that glasslet has, too."""


def differences(set_up: NodeSetUp, loaded: Loaded, problems: tuple[ConfigProblem, ...]) -> list[Difference]:
    """All of them, worst first. `loaded`: the Go kubelet's command line as glasslet reads it; `problems`: those that
    keep it from starting here."""
    found = [
        *_start(problems),
        *_version(set_up),
        *_volumes(set_up),
        *_cgroups(set_up, loaded),
        *_unit(set_up),
        *_runtime(loaded),
        *_settings(loaded),
        *_state(set_up),
    ]
    return sorted(found, key=lambda one: list(Weight).index(one.weight))


def _start(problems: tuple[ConfigProblem, ...]) -> Iterator[Difference]:
    for problem in problems:
        text = f"glasslet does not start with this: {problem.message}"
        remedy = f"allowed: {problem.allowed}" if problem.allowed else ""
        yield Difference(weight=Weight.STOP, subject=problem.field, text=text, remedy=remedy, origin=problem.origin)


def _version(set_up: NodeSetUp) -> Iterator[Difference]:
    version = set_up.running.version if set_up.running is not None else ""
    found, ours = re.match(r"v(\d+)\.(\d+)", version), re.match(r"v(\d+)\.(\d+)", KUBERNETES_VERSION)
    if found is not None and ours is not None and found.groups() != ours.groups():
        yield Difference(
            weight=Weight.STOP,
            subject="version",
            text=f"the Go kubelet is {version}, glasslet is at the level of {ours[0]}: files and defaults differ",
            remedy=f"bring the node to {ours[0]} first, with the Go kubelet",
        )


def _volumes(set_up: NodeSetUp) -> Iterator[Difference]:
    for plugin, pods in sorted(set_up.volumes.items()):
        if plugin not in SERVED_VOLUMES:
            yield Difference(
                weight=Weight.STOP,
                subject="volumes",
                text=f"{_pods(pods)} with a volume of {plugin.replace('~', '/')}, which glasslet has no plugin for",
                remedy="move these pods to another node",
            )


def _cgroups(set_up: NodeSetUp, loaded: Loaded) -> Iterator[Difference]:
    wanted = {"systemd": "kubepods.slice", "cgroupfs": "kubepods"}
    driver = loaded.configuration.cgroup_driver
    used = {name: folder for name, folder in wanted.items() if folder in set_up.cgroup_parents}
    if used and driver not in used:
        (other, folder), *_ = used.items()
        yield Difference(
            weight=Weight.DIFFER,
            subject="cgroupDriver",
            text=f"cgroupDriver is {driver}, but the pods of this node are below {folder}, as with {other}. A runtime "
            "that says which driver it uses (containerd 2) decides; with another one pods do not start",
            remedy=f"set cgroupDriver: {other}",
            origin=str(loaded.origin_of("cgroupDriver")),
        )


def _unit(set_up: NodeSetUp) -> Iterator[Difference]:
    unit = set_up.unit
    if not unit:
        return
    if unit.get("KillMode", "control-group") != "process":
        yield Difference(
            weight=Weight.DIFFER,
            subject="unit",
            text=f"KillMode={unit.get('KillMode', 'control-group')}: a runtime call that is under way when the agent "
            "ends is cut, with the small process that would hold its connection",
            remedy="KillMode=process",
        )
    if unit.get("Type", "simple") not in ("notify", "notify-reload"):
        yield Difference(
            weight=Weight.DIFFER,
            subject="unit",
            text=f"Type={unit.get('Type', 'simple')}: systemd calls the agent started before it accepts pods, as now",
            remedy="Type=notify",
        )
    if unit.get("ExecStart"):
        program = unit["ExecStart"].split()[0].lstrip("-@:+!")
        yield Difference(
            weight=Weight.DIFFER,
            subject="unit",
            text=f"ExecStart runs {program}",
            remedy="let it run glasslet's kubelet with the same arguments, in a drop-in",
        )


_RUNTIMES = {"containerd": "", "crio": "CRI-O", "cri-dockerd": "cri-dockerd"}


def _runtime(loaded: Loaded) -> Iterator[Difference]:
    endpoint = loaded.configuration.container_runtime_endpoint
    known = next((name for part, name in _RUNTIMES.items() if part in endpoint), endpoint)
    if known:
        yield Difference(
            weight=Weight.DIFFER,
            subject="runtime",
            text=f"glasslet is tested with containerd only, and this is {known}. Where a runtime sends no events, it "
            "is listed every second",
            origin=str(loaded.origin_of("containerRuntimeEndpoint")),
        )


def _settings(loaded: Loaded) -> Iterator[Difference]:
    """Settings that the Go kubelet acts upon and glasslet does not."""
    for notice in loaded.warnings:
        name = notice.field.removeprefix("featureGates.")
        why = next((table[name] for table in (FIELDS, OPTIONS, KUBELET_GATES) if name in table), "")
        if why and why not in SAME_UPSTREAM:
            subject = f"feature gate {name}" if name in KUBELET_GATES else name
            yield Difference(weight=Weight.DIFFER, subject=subject, text=f"has no effect: {why}", origin=notice.origin)


def _state(set_up: NodeSetUp) -> Iterator[Difference]:
    """Files of the Go kubelet that glasslet reads and goes on with."""
    for name, content in set_up.checkpoints.items():
        if content is None:
            yield Difference(
                weight=Weight.DIFFER,
                subject=name,
                text="is damaged: neither kubelet can read it; glasslet moves it aside and says so",
            )
    taken = {
        "device-plugins/kubelet_internal_checkpoint": "devices of running containers",
        "cpu_manager_state": "exclusive CPUs",
        "memory_manager_state": "memory of NUMA nodes",
        "dra_manager_state": "devices of resource claims",
        "allocated_pods_state": "resources granted to resized pods",
    }
    for name, what in taken.items():
        if set_up.checkpoints.get(name):
            yield Difference(weight=Weight.TAKEN_OVER, subject=what, text=f"read from {name}")
    if "kubelet-client-current.pem" in set_up.certificates:
        text = "kubelet-client-current.pem is used and renewed in its place"
        yield Difference(weight=Weight.TAKEN_OVER, subject="client certificate", text=text)
    pods = sum(set_up.volumes.get(plugin, 0) for plugin in SERVED_VOLUMES)
    if pods:
        text = f"{pods} folders of volumes that glasslet serves are found on disk and in the table of mounts"
        yield Difference(weight=Weight.TAKEN_OVER, subject="volumes", text=text)


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


def as_text(found: list[Difference]) -> str:
    """The list for people, worst first, and what it comes to."""
    lines: list[str] = []
    for weight in Weight:
        these = [one for one in found if one.weight is weight]
        if these:
            lines.append(f"{_HEADINGS[weight]}:")
        for one in these:
            lines.append(f"  {one.subject}: {one.text}{f' [{one.origin}]' if one.origin else ''}")
            lines += [f"      {one.remedy}"] if one.remedy else []
    stops = sum(one.weight is Weight.STOP for one in found)
    verdict = f"{stops} of these must be mended first" if stops else "glasslet can replace the Go kubelet of this node"
    return "\n".join([*lines, verdict])


_HEADINGS = {
    Weight.STOP: "before a replacement",
    Weight.DIFFER: "behaves differently",
    Weight.TAKEN_OVER: "goes on as it is",
}
