"""Verdicts about what the pod's specification refers to: objects, volumes, configuration."""

from __future__ import annotations

import re

from glasslet.answers.states import Rule, VerdictState
from glasslet.answers.why import VerdictAnswer
from glasslet.answers.words import duration, times
from glasslet.api.container import Container
from glasslet.glass.stuck import call_limit
from glasslet.glass.trace.timeline import moment
from glasslet.glass.verdicts.container_causes import container_cause
from glasslet.glass.verdicts.csi_words import ATTACH_STEP, attached_words, driver_cause, failed_call
from glasslet.glass.verdicts.situation import Situation
from glasslet.glass.verdicts.volume_words import volume_cause, volume_words
from glasslet.record.events import Waited
from glasslet.record.history import LiveWait
from glasslet.record.stations import Station, WaitKind

_NOT_FOUND = re.compile(r'(?P<kind>secret|configmap)s? "(?P<name>[^"]+)" not found', re.IGNORECASE)
_NO_KEY = re.compile(r"couldn't find key (?P<key>\S+) in (?P<kind>Secret|ConfigMap) (?P<name>\S+)")
_SECRET_OF_DRIVER = re.compile(r"Node\w+SecretRef (?P<namespace>[^/\s]+)/(?P<name>\S+) failed")
_ATTACHED = ": attached by the controller"
_OF_VOLUME = re.compile(r'(?:Mount|Map)Volume\.\w+ failed for volume "(?P<name>[^"]+)"')
_KINDS = {"secret": "Secret", "configmap": "ConfigMap"}
_CONFIG_REASONS = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"}


def missing_object(it: Situation) -> VerdictAnswer | None:
    """A Secret or ConfigMap, or a key of it, does not exist."""
    for container, message in _messages(it):
        if found := _NOT_FOUND.search(message):
            kind, name = _KINDS[found["kind"].lower()], found["name"].rpartition("/")[2]
            of_driver = _SECRET_OF_DRIVER.search(message)
            namespace = of_driver["namespace"] if of_driver is not None else it.pod.metadata.namespace
            what = f"{kind} {namespace}/{name}, which does not exist"
        elif found := _NO_KEY.search(message):
            kind, name = found["kind"], found["name"].rpartition("/")[2]
            what = f'key "{found["key"]}" of {kind} {found["name"]}, which does not exist'
        else:
            continue
        mend = "add the key to" if found.re is _NO_KEY else "create"
        instead = "mark the reference optional"
        if _SECRET_OF_DRIVER.search(message):
            instead = "correct the volume's reference to it: its CSI driver needs it"
        needed = _needs(it.container(container), kind, name) or f"container {container}"
        if volume := _OF_VOLUME.search(message):
            needed = f"volume {volume['name']}"
        return it.verdict(
            Rule.MISSING_OBJECT,
            VerdictState.WAITING,
            f"{it} waits for {what}.",
            brief=f"{kind} {name} does not exist",
            since=it.failing_since(Station.CREATED, container=container) or it.failing_since(Station.VOLUMES),
            evidence=[("needed by", needed), ("said", message), ("requested", _requested(it, name))],
            next_step=f"{mend} the {kind}, or {instead}",
        )
    return None


def _messages(it: Situation) -> list[tuple[str, str]]:
    """(container, message) of each waiting container, and of the pod itself (volumes come before any container)."""
    messages = [(status.name, status.state.waiting.message) for status, _ in it.statuses() if status.state.waiting]
    return messages + [
        ("", wait.on) for wait in it.record.waits if wait.kind == WaitKind.BACK_OFF and not wait.container
    ]


def config_error(it: Situation) -> VerdictAnswer | None:
    """A container cannot be created or started from its specification."""
    for status, kind in it.statuses():
        waiting = status.state.waiting
        if waiting is None or waiting.reason not in _CONFIG_REASONS:
            continue
        said = container_cause(waiting.message or waiting.reason, it.container(status.name))
        return it.verdict(
            Rule.CONFIG_ERROR,
            VerdictState.FAILING,
            f"{it} cannot start its {kind} container {status.name}: {said.words}.",
            brief=f"{status.name}: {said.words}",
            since=it.failing_since(Station.CREATED, container=status.name)
            or it.failing_since(Station.STARTED, container=status.name),
            evidence=[("reason", waiting.reason), ("message", waiting.message)],
            next_step=f"{said.next_step or 'correct what the message names'}; the agent tries again",
        )
    return None


def volume_not_ready(it: Situation) -> VerdictAnswer | None:
    """A volume is not mounted yet, or cannot be."""
    wait = it.wait(WaitKind.CSI_CALL) or it.wait(WaitKind.VOLUME)
    if wait is not None and wait.on.endswith(_ATTACHED):
        return _not_attached(it, wait)
    failures = it.failures(Station.VOLUMES)
    passed = it.passed(Station.VOLUMES)
    failed = bool(failures) and (passed is None or passed.end < failures[-1].end)
    if wait is None and not failed:
        return None
    last = failures[-1].detail if failed else ""
    named, cause = volume_cause(last)
    of_driver = failed_call(it.record.events, named)
    cause = driver_cause(last, of_driver) or cause
    call = wait.on if wait is not None else ""
    waited, doing = _waited_for(call)
    name = named or waited
    which = volume_words(it.pod, name) if name else "its volumes"
    since = it.failing_since(Station.VOLUMES) if failed else None
    began = since or moment(wait.since if wait is not None else failures[0].start)
    lasts = f"; {doing or 'a call'} runs for {it.ago(wait.since)}{_limit(wait)}" if wait is not None else ""
    return it.verdict(
        Rule.VOLUME_NOT_READY,
        VerdictState.FAILING if failed else VerdictState.WAITING,
        f"{it} waits for {which}{': ' + cause.words if last else ''}{lasts}.",
        brief=f"{which}: {cause.words}" if last else f"{which} not ready",
        since=began,
        evidence=[
            ("call", call),
            ("failed call", of_driver if failed else ""),
            ("last error", last),
            ("tried", times(len(failures)) if failed else ""),
        ],
        next_step=f"{cause.next_step or 'correct the volume, or create what it refers to'}; the agent tries again"
        if failed
        else "check what it is made of if it lasts: glasslet waits lists the call",
    )


def _limit(wait: LiveWait) -> str:
    limit = call_limit(wait, 0.0) if wait.kind == WaitKind.CSI_CALL else None
    return f" (of at most {duration(limit)})" if limit is not None else ""


def _not_attached(it: Situation, wait: LiveWait) -> VerdictAnswer:
    """The controller has not attached the volume to this node. An earlier try may have found out why."""
    failures = it.failures(Station.VOLUMES)
    last = failures[-1].detail if failures else ""
    of_driver = driver_cause(last, "")
    which = attached_words(wait.on.removeprefix("volume ").removesuffix(_ATTACHED))
    said = f"; {of_driver.words.replace('its CSI driver', 'its driver', 1)}" if of_driver is not None else ""
    return it.verdict(
        Rule.VOLUME_NOT_READY,
        VerdictState.FAILING if failures else VerdictState.WAITING,
        f"{it} waits for {which}, which the controller has not attached to this node{said}.",
        brief=f"{which} is not attached",
        since=it.failing_since(Station.VOLUMES) if failures else moment(wait.since),
        evidence=[("call", wait.on), ("last error", last)],
        next_step=(of_driver.next_step if of_driver is not None else "") or ATTACH_STEP,
    )


def _waited_for(call: str) -> tuple[str, str]:
    """(volume, what is done) of a wait: `volume NAME: CALL`, or a call of a driver."""
    if call.startswith("CSI driver "):
        doing, _, volume = call.partition(" of volume ")
        return volume, doing
    waited, _, doing = call.removeprefix("volume ").partition(": ")
    return waited, doing


def _requested(it: Situation, name: str) -> str:
    calls = [
        e for e in it.record.events if isinstance(e, Waited) and e.kind == WaitKind.API_CALL and f"/{name}" in e.on
    ]
    return f"{len(calls)} times, last {it.ago(calls[-1].end)} ago" if calls else ""


def _needs(container: Container | None, kind: str, name: str) -> str:
    """The environment entry that refers to the object: `container main, env DB_PASSWORD (key "password")`."""
    if container is None:
        return ""
    for env in container.env:
        source = env.value_from
        if source is None:
            continue
        ref = source.secret_key_ref if kind == "Secret" else source.config_map_key_ref
        if ref is not None and ref.name == name:
            return f'container {container.name}, env {env.name} (key "{ref.key}")'
    for whole in container.env_from:
        ref_ = whole.secret_ref if kind == "Secret" else whole.config_map_ref
        if ref_ is not None and ref_.name == name:
            return f"container {container.name}, envFrom"
    return ""
