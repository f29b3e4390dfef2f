"""`glasslet describe`: one pod in full."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from glasslet.answers.agent import WaitRow
from glasslet.answers.pods import ContainerRow, PodDescription, ProbeRow
from glasslet.answers.states import Outcome
from glasslet.answers.words import duration, milliseconds
from glasslet.cli.agent_client import AgentPlace, find_agent, pod_path
from glasslet.cli.options import namespace_option, pod_argument
from glasslet.cli.output import clock_time, fitted, output_option, printable, show, styled, table
from glasslet.cli.target import in_namespace, living_pod

_RESULTS_SHOWN = 4
"""Results of each probe; `-o json` shows all."""
_LATE_MS = 5.0
"""Milliseconds of lateness that are shown."""


@click.command("describe")
@pod_argument
@namespace_option
@output_option
@click.pass_obj
def command(place: AgentPlace, pod: str, namespace: str, form: str) -> None:
    """Show one pod in full: containers, conditions, probes, waits, findings, and the last events.

    POD is a name, namespace/name, or the beginning of one.
    """
    client = find_agent(place)
    target = living_pod(client, in_namespace(pod, namespace))
    answer = client.get(pod_path(target.namespace, target.name), PodDescription)
    show(answer, form, lambda: described(answer, datetime.now(UTC)))


def described(answer: PodDescription, now: datetime) -> str:
    """The description as text."""
    pod = answer.pod
    facts = [
        ("pod", f"{pod.namespace}/{pod.name}"),
        ("uid", pod.uid),
        ("phase", f"{pod.phase}{', ' + pod.reason if pod.reason else ''}, {pod.ready} of {pod.containers} ready"),
        ("now", pod.now),
        ("address", ", ".join(answer.ips) or pod.ip),
        ("from", answer.source),
        ("restarts", f"{pod.restarts} (policy {answer.restart_policy or 'Always'})"),
        ("qos", answer.qos_class),
        ("grace", f"{answer.grace_period} s" if answer.grace_period is not None else ""),
        ("volumes", ", ".join(answer.volumes)),
        ("labels", ", ".join(f"{key}={value}" for key, value in answer.labels.items())),
    ]
    parts = [
        "\n".join(f"{styled(label, 'bold')}{' ' * (10 - len(label))}{printable(text)}" for label, text in facts if text)
    ]
    parts.append(_containers(answer.containers, now))
    if answer.conditions:
        rows = [
            [c.type, c.status, clock_time(c.since), " ".join(part for part in (c.reason, c.message) if part) or "-"]
            for c in answer.conditions
        ]
        parts.append(table(("CONDITION", "STATUS", "SINCE", "WHY"), rows))
    if answer.probes:
        parts.append(_probes(answer.probes))
    if answer.waits:
        parts.append(waits_table(answer.waits, now))
    if answer.findings:
        parts.append("\n".join([styled("FINDINGS", "bold"), *(printable(f"  {text}") for text in answer.findings)]))
    if answer.timeline:
        rows = [
            [
                clock_time(row.at),
                row.container or "-",
                row.text,
                milliseconds(row.took_ms) if row.took_ms else "",
                "" if row.outcome == Outcome.OK else row.outcome,
            ]
            for row in answer.timeline
        ]
        headers = ("AT", "CONTAINER", "WHAT", "TOOK", "")
        parts.append(table(headers, fitted(rows, headers, columns=(2, 1))))
    return "\n\n".join(parts)


def waits_table(waits: tuple[WaitRow, ...], now: datetime) -> str:
    """The table of live waits."""
    rows = [
        [
            duration((now - wait.since).total_seconds()),
            wait.kind,
            wait.on,
            wait.pod or "(agent)",
            wait.container or "-",
            wait.station or "-",
            duration((wait.until - now).total_seconds()) if wait.until is not None else "-",
        ]
        for wait in waits
    ]
    headers: tuple[str, ...] = ("FOR", "KIND", "ON", "POD", "CONTAINER", "STATION", "ENDS IN")
    if any(wait.node for wait in waits):
        headers = (*headers, "NODE")
        rows = [[*shown, wait.node] for shown, wait in zip(rows, waits, strict=True)]
    return table(headers, fitted(rows, headers, columns=(2, 3, 4)))


def _probes(probes: tuple[ProbeRow, ...]) -> str:
    """The table of the last results of each probe, newest last."""
    shown = [row for at, row in enumerate(probes) if not _is_old(probes, at)]
    rows = [
        [clock_time(row.at), row.container, row.kind, row.verdict, row.note, milliseconds(row.total_ms), _parts(row)]
        for row in shown
    ]
    headers = ("PROBED", "CONTAINER", "PROBE", "RESULT", "", "TOOK", "PARTS")
    return table(headers, fitted(rows, headers, columns=(1, 4, 6)))


def _is_old(probes: tuple[ProbeRow, ...], at: int) -> bool:
    """Whether enough newer results of the same probe follow."""
    row = probes[at]
    later = probes[at + 1 :]
    return sum((other.container, other.kind) == (row.container, row.kind) for other in later) >= _RESULTS_SHOWN


def _parts(row: ProbeRow) -> str:
    named = (
        ("dns", row.dns_ms),
        ("connect", row.connect_ms),
        ("tls", row.tls_ms),
        ("first byte", row.first_byte_ms),
        ("late", row.late_ms if row.late_ms >= _LATE_MS else None),
        ("agent stalled", row.stalled_ms or None),
    )
    return ", ".join(f"{name} {milliseconds(took)}" for name, took in named if took is not None) or "-"


def _containers(containers: tuple[ContainerRow, ...], now: datetime) -> str:
    rows = []
    for row in containers:
        why = ": ".join(part for part in (row.reason, row.message.strip()) if part)
        if row.exit_code is not None:
            why = f"exit {row.exit_code}{' ' + why if why else ''}"
        last = f"exit {row.last_exit_code} {row.last_reason}" if row.last_exit_code is not None else "-"
        since = duration((now - row.since).total_seconds()) if row.since is not None else "-"
        ready = "yes" if row.ready else "no"
        rows.append([row.name, row.kind, row.state, since, ready, str(row.restarts), last, row.image, why or "-"])
    headers = ("CONTAINER", "KIND", "STATE", "SINCE", "READY", "RESTARTS", "LAST", "IMAGE", "WHY")
    # The reason is never cut: a long one wraps.
    return table(headers, fitted(rows, headers, columns=(7,)))
