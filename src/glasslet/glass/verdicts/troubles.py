"""Everything on a node that is not as it should be, the worst first: the node, its pods, manifests and findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from glasslet.answers.agent import ManifestProblem
from glasslet.answers.states import Rule, VerdictState, VerdictSubject
from glasslet.answers.why import Evidence, Trouble, TroublesAnswer, VerdictAnswer
from glasslet.api.pod_ref import PodRef
from glasslet.glass.trace.timeline import moment
from glasslet.record.events import FindingMade
from glasslet.record.history import PodRecord

MOST: Final = 500
"""Troubles in one answer. A node has 110 pods unless it is configured otherwise."""
_STATES: Final = (
    VerdictState.FAILING,
    VerdictState.ENDED,
    VerdictState.WAITING,
    VerdictState.HELD,
    VerdictState.STOPPING,
    VerdictState.STARTING,
)
_SUBJECTS: Final = (VerdictSubject.NODE, VerdictSubject.POD, VerdictSubject.MANIFEST, VerdictSubject.AGENT)
_WRONG: Final = (VerdictState.FAILING, VerdictState.WAITING, VerdictState.ENDED)
_NOTHING_WRONG: Final = (Rule.FINE, Rule.SUCCEEDED, Rule.GONE)
_PASSING: Final = (Rule.PREDECESSOR, Rule.CONTAINER_STOPPING, Rule.WAITING_REASON, Rule.UNKNOWN)
"""Rules of a waiting pod that goes on by itself."""
_STEPS: Final = (
    (
        "clock jumped",
        "check what sets the clock (timedatectl, chronyc tracking); times in sentences may be off by that",
    ),
    (
        "two manifests (",
        "give one of the two another name (grep for it among the manifests), or remove one of the files",
    ),
    ("limits were exceeded", "shorten dnsConfig, or resolv.conf of the node: resolvers take 3 servers and 32 domains"),
    (
        "does not offer, and runs without",
        "check the device plugin of that resource on this node (glasslet waits, its pod)",
    ),
    ("mounts below", "make that mount shared (mount --make-rshared)"),
)
"""What helps against some findings: words of theirs, and the next step."""
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class NodeTroubles:
    """Collects the troubles of one node. `own`: the agent's record; `broken`: manifests that no pod came of."""

    def __init__(self, *, node: VerdictAnswer, own: PodRecord, broken: Sequence[ManifestProblem]) -> None:
        self.pods = 0
        """Pods that were looked at."""
        self._node = node
        self._troubles: list[Trouble] = []
        self._add(VerdictSubject.NODE, node)
        for verdict in _manifests(broken):
            self._add(VerdictSubject.MANIFEST, verdict)
        files = tuple(problem.file for problem in broken)
        for text in own.findings():
            # A file's problem is a finding, too.
            if not text.startswith(files):
                self._add(VerdictSubject.AGENT, _finding(own, text, name=node.name))

    def add_pod(self, verdict: VerdictAnswer) -> None:
        """A pod with its verdict."""
        self.pods += 1
        self._add(VerdictSubject.POD, verdict)

    def add_findings(self, record: PodRecord) -> None:
        """The findings of a pod, unless its verdict shows that something is wrong with it."""
        pod = record.pod
        if pod is None or any(one.wrong and _is_about(one, pod) for one in self._troubles):
            return
        for text in record.findings():
            self._add(VerdictSubject.POD, _finding(record, text, name=pod.name, namespace=pod.namespace))

    def answer(self) -> TroublesAnswer:
        """All of them, in order."""
        found = sorted(self._troubles, key=_order)
        return TroublesAnswer(
            sentence=_sentence(self._node.name, self.pods, found),
            node=self._node,
            wrong=any(trouble.wrong for trouble in found),
            pods=self.pods,
            troubles=tuple(found[:MOST]),
            left_out=max(0, len(found) - MOST),
        )

    def _add(self, subject: VerdictSubject, verdict: VerdictAnswer) -> None:
        if verdict.rule not in _NOTHING_WRONG:
            # Findings of the agent have no weight of their own: many are remarks about the machine.
            weighty = verdict.state in _WRONG and verdict.rule not in _PASSING
            wrong = weighty and subject is not VerdictSubject.AGENT
            self._troubles.append(Trouble(subject=subject, verdict=verdict, wrong=wrong))


def _is_about(trouble: Trouble, pod: PodRef) -> bool:
    return trouble.subject == VerdictSubject.POD and (trouble.verdict.namespace, trouble.verdict.name) == (
        pod.namespace,
        pod.name,
    )


def _order(trouble: Trouble) -> tuple[bool, bool, int, int, datetime, str, str]:
    """The node first, then what does not pass by itself, by state; the oldest of a kind first."""
    verdict = trouble.verdict
    return (
        trouble.subject != VerdictSubject.NODE,
        not trouble.wrong,
        _STATES.index(verdict.state) if verdict.state in _STATES else len(_STATES),
        _SUBJECTS.index(trouble.subject) if trouble.subject in _SUBJECTS else len(_SUBJECTS),
        verdict.since or _LONG_AGO,
        verdict.namespace,
        verdict.name,
    )


def _manifests(broken: Iterable[ManifestProblem]) -> list[VerdictAnswer]:
    """One verdict for each file, with all its problems."""
    files: dict[str, list[ManifestProblem]] = {}
    for problem in broken:
        files.setdefault(problem.file, []).append(problem)
    return [_manifest(file, problems) for file, problems in files.items()]


def _manifest(file: str, problems: Sequence[ManifestProblem]) -> VerdictAnswer:
    first = problems[0]
    line = f"line {first.line}: " if first.line else ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return VerdictAnswer(
        namespace="",
        name=file,
        rule=Rule.BROKEN_MANIFEST,
        state=VerdictState.FAILING,
        sentence=f"no pod comes of manifest {file}: {line}{first.message}{more}.",
        brief=first.message,
        evidence=tuple(Evidence(label="problem", text=str(problem)) for problem in problems),
        next_step="correct the file; the agent reads it again by itself",
    )


def _finding(record: PodRecord, text: str, *, name: str, namespace: str = "") -> VerdictAnswer:
    since = next(
        (moment(it.start) for it in reversed(record.events) if isinstance(it, FindingMade) and it.text == text), None
    )
    whose = f"{namespace}/{name}" if namespace else f"the agent on {name}"
    when = f", since {since:%Y-%m-%d %H:%M:%S} UTC" if since is not None else ""
    return VerdictAnswer(
        namespace=namespace,
        name=name,
        rule=Rule.FINDING,
        state=VerdictState.WAITING,
        sentence=f"{whose} found{when}: {text.removesuffix('.')}.",
        brief=text,
        since=since,
        next_step=next((step for words, step in _STEPS if words in text), ""),
    )


def _sentence(node: str, pods: int, found: Sequence[Trouble]) -> str:
    """`node-a: 2 of 14 pods, 1 manifest and the node itself are not as they should be.`"""
    wrong = [trouble for trouble in found if trouble.wrong]
    passing = len({_name(one) for one in found if one.subject == VerdictSubject.POD and not one.wrong})
    changing = f"; {_count(passing, 'pod')} {'is' if passing == 1 else 'are'} starting or stopping" if passing else ""
    if findings := sum(1 for one in found if one.subject == VerdictSubject.AGENT):
        changing += f"; the agent has {_count(findings, 'finding')}"
    if not wrong:
        return f"{node}: nothing is wrong with the node and its {_count(pods, 'pod')}{changing}."
    parts = ["the node itself"] if any(one.subject == VerdictSubject.NODE for one in wrong) else []
    if failing := len({_name(one) for one in wrong if one.subject == VerdictSubject.POD}):
        parts.append(f"{failing} of {_count(max(pods, failing), 'pod')}")
    if manifests := sum(1 for one in wrong if one.subject == VerdictSubject.MANIFEST):
        parts.append(_count(manifests, "manifest"))
    listed = ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
    return f"{node}: something is wrong with {listed}{changing}."


def _name(trouble: Trouble) -> tuple[str, str]:
    return trouble.verdict.namespace, trouble.verdict.name


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
