"""Tries the rules about a pod in order: causes before their consequences."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from glasslet.answers.states import ContainerKind, Rule, VerdictState
from glasslet.answers.why import Evidence, VerdictAnswer
from glasslet.glass.verdicts import claim_words, containers, ending, images, needs, progress, rejections, surroundings
from glasslet.glass.verdicts.situation import Situation
from glasslet.record.stations import Station

RULES: tuple[Callable[[Situation], VerdictAnswer | None], ...] = (
    progress.held,
    ending.finalizer,
    rejections.rejected,
    ending.over,
    progress.stuck,
    ending.container_stopping,
    ending.terminating,
    surroundings.runtime_down,
    needs.missing_object,
    images.image_failed,
    needs.config_error,
    containers.crash_back_off,
    containers.post_start_hook,
    needs.volume_not_ready,
    claim_words.claim_not_prepared,
    surroundings.network_not_ready,
    surroundings.sandbox,
    surroundings.predecessor,
    surroundings.device_plugin,
    images.image_pulling,
    containers.init_not_finished,
    containers.readiness_gate,
    containers.not_ready,
    containers.ended_container,
    progress.fine,
)

_QUOTING = frozenset(
    (
        Rule.FINE,
        Rule.CRASH_BACK_OFF,
        Rule.POST_START_HOOK,
        Rule.INIT_FAILED,
        Rule.INIT_NOT_FINISHED,
        Rule.FAILED,
        Rule.NOT_READY,
        Rule.ENDED_CONTAINER,
    )
)
_NO_SPACE = re.compile(r"no space (?:is )?left on (?:device|the disk|the runtime's disk)", re.IGNORECASE)
_FINDINGS = 4
"""Findings of a pod beside its verdict, at most."""
_QUIET = (VerdictState.FINE, VerdictState.ENDED)


def short_verdict(it: Situation) -> VerdictAnswer:
    """The verdict on the pod without `rest`: for lists."""
    for rule in RULES:
        if verdict := rule(it):
            return verdict
    return progress.under_way(it)


def pod_verdict(it: Situation) -> VerdictAnswer:
    """The verdict on the pod."""
    verdict = _with_inodes(it, short_verdict(it))
    if due := ending.deadline(it):
        verdict = replace(
            verdict, evidence=(*verdict.evidence, Evidence(label="deadline", text=f"the pod is stopped {due}"))
        )
    found = tuple(Evidence(label="finding", text=text) for text in it.record.findings() if text not in verdict.sentence)
    verdict = replace(verdict, evidence=(*verdict.evidence, *found[:_FINDINGS]))
    return replace(verdict, rest=the_rest(it)) if verdict.state not in _QUIET else verdict


def _with_inodes(it: Situation, verdict: VerdictAnswer) -> VerdictAnswer:
    """What is missing is not space but inodes: the kernel has one error for both."""
    if not it.without_inodes or not (found := _NO_SPACE.search(verdict.sentence)):
        return verdict
    where = f"no inode is left on the disk of {it.without_inodes}"
    return replace(
        verdict,
        sentence=f"{verdict.sentence[: found.start()]}{where}{verdict.sentence[found.end() :]}",
        brief=where,
        evidence=(*verdict.evidence, Evidence(label="inodes", text=f"{where}; bytes are free (df -i, df)")),
        next_step=f"remove files that are not needed on the disk of {it.without_inodes} (df -i): many small ones; "
        "the agent tries again",
    )


def quotes_last_words(verdict: VerdictAnswer) -> bool:
    """Whether the verdict shows the last line of a container's log where it is known."""
    return verdict.rule in _QUOTING


def is_settled(verdict: VerdictAnswer) -> bool:
    """Whether waiting longer changes nothing: the pod is ready, over, or fails until the operator acts."""
    return verdict.state in (*_QUIET, VerdictState.FAILING) or verdict.rule == Rule.MISSING_OBJECT


def the_rest(it: Situation) -> str:
    """The parts of the start that are done, so that the operator need not check them."""
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
    ready = [status.name for status, kind in it.statuses() if kind == ContainerKind.MAIN and status.ready]
    if ready:
        done.append(f"{', '.join(ready)} ready")
    return ", ".join(done)
