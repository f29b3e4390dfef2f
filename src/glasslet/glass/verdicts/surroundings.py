"""Verdicts about a pod that waits for something outside it: runtime, network, device plugin, or another pod."""

from __future__ import annotations

from glasslet.answers.states import Rule, VerdictState
from glasslet.answers.why import VerdictAnswer
from glasslet.answers.words import times
from glasslet.glass.trace.timeline import moment
from glasslet.glass.verdicts.causes import CNI_STEP, Cause, last_part, sandbox_cause
from glasslet.glass.verdicts.situation import Situation
from glasslet.record.stations import UNUSABLE, Station, WaitKind

_RUNTIME = "check the runtime's service and log (systemctl status containerd)"


def runtime_down(it: Situation) -> VerdictAnswer | None:
    """No container can be started or stopped while the runtime does not answer."""
    if not it.runtime_error or it.condition("Ready") == "True":
        return None
    return it.verdict(
        Rule.RUNTIME_DOWN,
        VerdictState.FAILING,
        f"{it} cannot go on: {it.runtime_cause.words if it.runtime_cause is not None else it.runtime_error}.",
        brief="container runtime down",
        since=it.runtime_since,
        evidence=[("runtime", it.runtime_error), ("network", it.network_error)],
        next_step=f"{it.runtime_cause.next_step if it.runtime_cause is not None else _RUNTIME}; "
        "the pod goes on by itself",
    )


def predecessor(it: Situation) -> VerdictAnswer | None:
    """A static pod waits until an earlier pod of the same name is removed."""
    wait = it.wait(WaitKind.QUEUE)
    if wait is None or wait.station or it.passed(Station.SANDBOX) is not None:
        return None
    if it.rival_since is not None:
        ran = f"since {it.clock(it.rival_since)} ({it.ago(it.rival_since)})"
        return it.verdict(
            Rule.NAME_CLASH,
            VerdictState.FAILING,
            f"{it} does not start: another manifest has a pod of this name and namespace, which came first and is to "
            f"run {ran}.",
            brief="another manifest has a pod of this name",
            since=moment(wait.since),
            evidence=[("in the way", wait.on)],
            next_step="give one of the two another name (grep for it among the manifests), or remove one of the files",
        )
    return it.verdict(
        Rule.PREDECESSOR,
        VerdictState.WAITING,
        f"{it} waits for {wait.on} ({it.ago(wait.since)}).",
        brief=f"waits for {wait.on}",
        since=moment(wait.since),
        evidence=[("in the way", wait.on)],
        next_step="nothing: it starts when the earlier pod is removed (see `glasslet waits`)",
    )


def device_plugin(it: Situation) -> VerdictAnswer | None:
    """The pod gets devices; their plugin has not answered yet."""
    wait = it.wait(WaitKind.DEVICE)
    if wait is None:
        return None
    return it.verdict(
        Rule.DEVICE_PLUGIN,
        VerdictState.WAITING,
        f"{it} waits for {wait.on} ({it.ago(wait.since)}).",
        brief=f"waits for {wait.on}",
        since=moment(wait.since),
        evidence=[("call", wait.on)],
        next_step="if it lasts, check the plugin's pod and log; other pods are not affected",
    )


def sandbox(it: Situation) -> VerdictAnswer | None:
    """The pod's sandbox cannot be created: most often because of the network (CNI)."""
    failures = it.failures(Station.SANDBOX)
    passed = it.passed(Station.SANDBOX)
    if not failures or (passed is not None and passed.end > failures[-1].end):
        return None
    last = failures[-1]
    _, unusable, why = last.detail.partition(UNUSABLE)
    if unusable:
        return it.verdict(
            Rule.SANDBOX,
            VerdictState.FAILING,
            f"{it} cannot run on this node: {why}.",
            brief=why,
            since=moment(failures[0].start),
            evidence=[("tried", f"{len(failures)} times, last {it.ago(last.end)} ago")],
            next_step="change the pod or the node; the agent tries again",
        )
    cause = sandbox_cause(last.detail)
    if cause is None and it.network_error:
        cause = Cause(f"its network cannot be set up: {it.network_error}", CNI_STEP)
    words = cause.words if cause is not None else f"the runtime refuses it: {last_part(last.detail)}"
    return it.verdict(
        Rule.SANDBOX,
        VerdictState.FAILING,
        f"{it} has no sandbox: {words} (tried {times(len(failures))}).",
        brief=f"sandbox fails: {words}",
        since=it.failing_since(Station.SANDBOX),
        evidence=[("last error", last.detail), ("at", f"{it.ago(last.end)} ago"), ("network", it.network_error)],
        next_step=(cause.next_step if cause is not None else "")
        or "check the runtime's log, and that the sandbox (pause) image is present",
    )


def network_not_ready(it: Situation) -> VerdictAnswer | None:
    """The pod needs the pod network, and the runtime has none yet."""
    if not it.network_error or it.pod.spec.host_network or it.status.pod_ip or it.condition("Ready") == "True":
        return None
    return it.verdict(
        Rule.NETWORK_NOT_READY,
        VerdictState.WAITING,
        f"{it} gets no network: {it.network_cause.words if it.network_cause is not None else it.network_error}.",
        brief="network not ready",
        since=it.network_since,
        evidence=[("network", it.network_error)],
        next_step=it.network_cause.next_step if it.network_cause is not None else CNI_STEP,
    )
