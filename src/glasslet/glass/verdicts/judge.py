"""The rules in the order in which they are asked: causes before their consequences."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from glasslet.answers.why import VerdictAnswer
from glasslet.glass.verdicts import containers, ending, images, needs, node, progress
from glasslet.glass.verdicts.situation import MAIN, Situation
from glasslet.record.stations import Station

RULES: tuple[Callable[[Situation], VerdictAnswer | None], ...] = (
    ending.over,
    progress.stuck,
    ending.terminating,
    node.runtime_down,
    needs.missing_object,
    images.image_failed,
    needs.config_error,
    containers.crash_back_off,
    needs.volume_not_ready,
    node.sandbox,
    node.network_not_ready,
    node.predecessor,
    node.device_plugin,
    images.image_pulling,
    containers.init_not_finished,
    containers.not_ready,
    containers.ended_container,
    progress.fine,
)


def in_short(it: Situation) -> VerdictAnswer:
    """Why the pod is as it is, without what is done already: for lists."""
    for rule in RULES:
        if verdict := rule(it):
            return verdict
    return progress.under_way(it)


def judge(it: Situation) -> VerdictAnswer:
    """Why the pod is as it is."""
    verdict = in_short(it)
    return replace(verdict, rest=the_rest(it)) if verdict.state not in ("fine", "ended") else verdict


def is_settled(verdict: VerdictAnswer) -> bool:
    """Waiting longer changes nothing that a person would wait for: ready, over, or failing until somebody acts."""
    return verdict.state in ("fine", "ended", "failing") or verdict.rule == "missing_object"


def the_rest(it: Situation) -> str:
    """What is already done: so that nobody looks there."""
    done = []
    if it.passed(Station.ADMITTED) is not None:
        done.append("admitted")
    if it.passed(Station.VOLUMES) is not None:
        done.append("volumes mounted")
    address = it.status.pod_ip
    if it.passed(Station.SANDBOX) is not None or address:
        done.append(f"sandbox up ({address})" if address else "sandbox up")
    failures = it.failures(Station.IMAGE)
    image = it.passed(Station.IMAGE)
    if image is not None and not it.at(Station.IMAGE) and (not failures or failures[-1].end < image.end):
        done.append("image present")
    ready = [status.name for status, kind in it.statuses() if kind == MAIN and status.ready]
    if ready:
        done.append(f"{', '.join(ready)} ready")
    return ", ".join(done)
