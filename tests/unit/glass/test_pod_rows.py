"""The rows of `ps` and `describe` that the page and the command line share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from glasslet.answers.pods import DecisionInput, PodRow, ProbeDescription
from glasslet.answers.states import VerdictState
from glasslet.api.lifecycle import ExecAction, GRPCAction, HTTPGetAction, Probe, TCPSocketAction
from glasslet.api.pod_status import PodCondition, PodStatus
from glasslet.glass.pod_rows import pod_row
from glasslet.glass.probe_words import probe_descriptions
from glasslet.glass.trace.timeline import described
from glasslet.glass.verdicts.pod_rules import pod_verdict
from glasslet.glass.verdicts.situation import Situation
from glasslet.record.events import Decided, Event
from tests.builders.pod import container, pod
from tests.builders.record import BASE, START, record, standing, station


def row_of(*events: Event, status: PodStatus | None = None, **live: Any) -> PodRow:
    it = Situation(
        pod=pod(container("main")),
        status=status or PodStatus(phase="Pending"),
        now=START + timedelta(seconds=100),
        record=record(*events, **live),
    )
    return pod_row(it, pod_verdict(it))


def test_a_row_has_the_state_of_the_verdict() -> None:
    assert row_of().state in (VerdictState.STARTING, VerdictState.WAITING)


def test_a_pod_stands_at_the_station_that_it_reached_last() -> None:
    stations = (standing("planned", 1.0), standing("sandbox", 2.0))
    assert row_of(stations=stations).station == "sandbox"


def test_a_pod_between_two_stations_stands_at_the_one_that_it_left() -> None:
    assert row_of(station("volumes", 0, 1), station("sandbox", 1, 2), station("status", 2, 3)).station == "sandbox"


def test_a_ready_pod_stands_nowhere() -> None:
    ready = PodStatus(phase="Running", conditions=(PodCondition(type="Ready", status="True"),))
    assert row_of(status=ready, stations=(standing("probes", 2.0),)).station == ""


def test_a_decision_has_its_inputs_one_by_one() -> None:
    row = described(Decided(BASE, "restart main", "main", (("exit code", "3"), ("back-off", "10 s"))))
    assert row.inputs == (DecisionInput(name="exit code", value="3"), DecisionInput(name="back-off", value="10 s"))


def probes_of(**probes: Probe) -> dict[str, ProbeDescription]:
    main = replace(container("main"), **{f"{kind}_probe": probe for kind, probe in probes.items()})
    return {row.kind: row for row in probe_descriptions(pod(main))}


def test_a_probe_is_described_by_its_target() -> None:
    found = probes_of(
        startup=Probe(exec=ExecAction(command=("cat", "/ready"))),
        readiness=Probe(http_get=HTTPGetAction(path="/ready", port=8080)),
        liveness=Probe(tcp_socket=TCPSocketAction(port=9300)),
    )
    targets = {kind: row.target for kind, row in found.items()}
    assert targets == {"startup": "exec cat /ready", "readiness": "http :8080/ready", "liveness": "tcp :9300"}
    assert probes_of(liveness=Probe(grpc=GRPCAction(port=50051)))["liveness"].target == "grpc :50051"


def test_a_probe_without_figures_has_those_of_kubernetes() -> None:
    row = probes_of(readiness=Probe(tcp_socket=TCPSocketAction(port=80)))["readiness"]
    assert (row.period, row.timeout, row.failures, row.successes) == (10, 1, 3, 1)


def test_a_long_command_of_a_probe_is_cut() -> None:
    assert len(probes_of(liveness=Probe(exec=ExecAction(command=("x" * 500,))))["liveness"].target) < 100
