"""Ports, commands, messages, settings: the small rules around probes."""

from __future__ import annotations

import pytest

from glasslet.api.container import ContainerPort
from glasslet.api.env import EnvVar, EnvVarSource, ObjectFieldSelector
from glasslet.api.lifecycle import ExecAction, GRPCAction, HTTPGetAction, Probe, TCPSocketAction
from glasslet.probes.answer import Unprobeable, port_number
from glasslet.probes.exec_command import go_seconds, probe_command
from glasslet.probes.grpc_health import encode_service, serving_status
from glasslet.probes.kinds import ProbeKind, in_words
from glasslet.probes.settings import EXEC_AT_ONCE, REPEAT_LATE, ProbeSettings, probe_settings
from tests.builders.pod import container

WEB = container(ports=(ContainerPort(name="web", container_port=8080),))


@pytest.mark.parametrize(("port", "number"), [(80, 80), ("80", 80), ("web", 8080)])
def test_a_port_may_be_a_name(port: int | str, number: int) -> None:
    # behaviours.md §10: "Port may be a name from the container's ports."
    assert port_number(port, WEB) == number


@pytest.mark.parametrize(
    ("port", "why"), [("db", "port db not found"), (0, "invalid port number: 0"), ("65536", "invalid port number")]
)
def test_a_port_that_is_none_is_told(port: int | str, why: str) -> None:
    with pytest.raises(Unprobeable, match=why):
        port_number(port, WEB)


def test_a_command_sees_only_what_the_manifest_itself_says() -> None:
    # behaviours.md §10: "Command expands $(NAME) only with literal env values of the container."
    from_field = EnvVarSource(field_ref=ObjectFieldSelector(field_path="metadata.name"))
    env = (EnvVar(name="A", value="a"), EnvVar(name="B", value="$(A)"), EnvVar(name="C", value_from=from_field))
    action = ExecAction(command=("$(A)", "$(B)", "<$(C)>", "$(D)", "$$(A)"))
    assert probe_command(action, container(env=env)) == ("a", "$(A)", "<>", "$(D)", "$(A)")


@pytest.mark.parametrize(("seconds", "text"), [(1, "1s"), (90, "1m30s")])
def test_durations_read_as_in_the_go_kubelet(seconds: float, text: str) -> None:
    assert go_seconds(seconds) == text


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        (Probe(http_get=HTTPGetAction(port=8080, path="/ready?token=secret")), "readiness http :8080/ready"),
        (Probe(http_get=HTTPGetAction(port="web", host="h", scheme="HTTPS")), "readiness https h:web/"),
        (Probe(tcp_socket=TCPSocketAction(port=5432)), "readiness tcp :5432"),
        (Probe(grpc=GRPCAction(port=9000, service="db")), "readiness grpc :9000 db"),
        (Probe(exec=ExecAction(command=("sh", "-c", "test\n -f /x"))), "readiness exec sh -c test -f /x"),
        (Probe(exec=ExecAction(command=("x" * 100,))), f"readiness exec {'x' * 59}…"),
    ],
)
def test_a_probe_is_named_without_its_secrets(probe: Probe, words: str) -> None:
    assert in_words(ProbeKind.READINESS, probe) == words


@pytest.mark.parametrize(("service", "message"), [("", b""), ("db", b"\x0a\x02db"), ("x" * 200, b"\x0a\xc8\x01")])
def test_a_health_request_names_the_service(service: str, message: bytes) -> None:
    assert encode_service(service)[:4] == (message + service.encode() if message[2:3] != b"d" else message)[:4]


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (b"", 0),
        (b"\x08\x01", 1),
        (b"\x12\x01x\x08\x02", 2),
        (b"\x19" + b"0" * 8 + b"\x1d" + b"0" * 4 + b"\x08\x01", 1),
    ],
)
def test_a_health_answer_is_read_past_unknown_fields(message: bytes, status: int) -> None:
    assert serving_status(message) == status


@pytest.mark.parametrize("message", [b"\x08", b"\x0b", b"\x08" + b"\xff" * 20])
def test_a_health_answer_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match="no health answer"):
        serving_status(message)


def test_nothing_is_limited_and_late_probes_are_repeated_by_default() -> None:
    assert probe_settings({}) == ProbeSettings(exec_at_once=0, repeat_late=True)


def test_settings_come_from_the_environment() -> None:
    assert probe_settings({EXEC_AT_ONCE: "4", REPEAT_LATE: "False"}) == ProbeSettings(exec_at_once=4, repeat_late=False)


@pytest.mark.parametrize(("name", "value"), [(EXEC_AT_ONCE, "-1"), (EXEC_AT_ONCE, "many"), (REPEAT_LATE, "maybe")])
def test_a_setting_that_cannot_be_names_itself(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{name}='{value}'.*want"):
        probe_settings({name: value})
