"""Probes, lifecycle hooks, and what both can do: exec, HTTP, TCP, gRPC, sleep."""

from __future__ import annotations

from collections.abc import Callable

from glasslet.api.container import Container, EphemeralContainer
from glasslet.api.field_errors import FieldPath, forbidden, invalid, not_supported, required
from glasslet.api.formats import http_header_problems, port_name_problems, port_number_problems
from glasslet.api.lifecycle import HTTPGetAction, Lifecycle, LifecycleHandler, Probe
from glasslet.api.pod import PodOS
from glasslet.api.validation.rules import Errors, int32, not_negative, present
from glasslet.api.validation.stop_signals import STOP_SIGNALS

AnyContainer = Container | EphemeralContainer
_ONE_HANDLER = "may not specify more than 1 handler type"
_COUNTS = ("initial_delay_seconds", "timeout_seconds", "period_seconds", "success_threshold", "failure_threshold")
_WIRE = {
    "initial_delay_seconds": "initialDelaySeconds", "timeout_seconds": "timeoutSeconds",
    "period_seconds": "periodSeconds", "success_threshold": "successThreshold",
    "failure_threshold": "failureThreshold",
}  # fmt: skip


def probe_errors(container: AnyContainer, path: FieldPath, grace: int | None) -> Errors:
    """The three probes of a container."""
    for name, probe in (("livenessProbe", container.liveness_probe), ("startupProbe", container.startup_probe)):
        if probe is not None:
            here = path.child(name)
            yield from _probe(probe, here, grace)
            if probe.success_threshold != 1:
                yield invalid(here.child("successThreshold"), probe.success_threshold, "must be 1")
    readiness = container.readiness_probe
    if readiness is not None:
        here = path.child("readinessProbe")
        yield from _probe(readiness, here, grace)
        if readiness.termination_grace_period_seconds is not None:
            yield invalid(
                here.child("terminationGracePeriodSeconds"),
                readiness.termination_grace_period_seconds,
                "must not be set for readinessProbes",
            )


def lifecycle_errors(lifecycle: Lifecycle | None, path: FieldPath, grace: int | None, pod_os: PodOS | None) -> Errors:
    """postStart, preStop and the stop signal of a container."""
    if lifecycle is None:
        return
    for name, handler in (("postStart", lifecycle.post_start), ("preStop", lifecycle.pre_stop)):
        if handler is not None:
            yield from _handler(handler, path.child(name), grace)
    signal = lifecycle.stop_signal
    if signal is not None:
        if pod_os is None:
            yield forbidden(path.child("stopSignal"), "may not be set for containers with empty `spec.os.name`")
        elif signal not in (allowed := STOP_SIGNALS.get(pod_os.name, (signal,))):
            yield not_supported(path.child("stopSignal"), signal, allowed)


def _probe(probe: Probe, path: FieldPath, grace: int | None) -> Errors:
    yield from _handler(probe, path, grace)
    for name in _COUNTS:
        yield from not_negative(getattr(probe, name), path.child(_WIRE[name]))
        yield from int32(getattr(probe, name), path.child(_WIRE[name]))
    own_grace = probe.termination_grace_period_seconds
    if own_grace is not None and own_grace <= 0:
        yield invalid(path.child("terminationGracePeriodSeconds"), own_grace, "must be greater than 0")


def _handler(handler: Probe | LifecycleHandler, path: FieldPath, grace: int | None) -> Errors:
    checks: list[tuple[str, Callable[[FieldPath], Errors]]] = []
    if (command := handler.exec) is not None:
        checks.append(("exec", lambda here: present(command.command, here.child("command"))))
    if (http := handler.http_get) is not None:
        checks.append(("httpGet", lambda here: _http_get(http, here)))
    if (tcp := handler.tcp_socket) is not None:
        checks.append(("tcpSocket", lambda here: port_errors(tcp.port, here.child("port"))))
    if isinstance(handler, Probe):
        if (grpc := handler.grpc) is not None:
            checks.append(("grpc", lambda here: port_errors(grpc.port, here.child("port"))))
    elif (sleep := handler.sleep) is not None:
        checks.append(("sleep", lambda here: _sleep(sleep.seconds, here, grace)))
    if not checks:
        yield required(path, "must specify a handler type")
    for number, (name, check) in enumerate(checks):
        if number:
            yield forbidden(path.child(name), _ONE_HANDLER)
        else:
            yield from check(path.child(name))


def _sleep(seconds: int, path: FieldPath, grace: int | None) -> Errors:
    if grace is not None and not 0 < seconds <= grace:
        yield invalid(
            path,
            seconds,
            f"must be greater than 0 and less than terminationGracePeriodSeconds ({grace})."
            " Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.",
        )


def _http_get(action: HTTPGetAction, path: FieldPath) -> Errors:
    yield from present(action.path, path.child("path"))
    yield from port_errors(action.port, path.child("port"))
    if action.scheme not in ("HTTP", "HTTPS"):
        yield not_supported(path.child("scheme"), action.scheme, ("HTTP", "HTTPS"))
    for header in action.http_headers:
        for problem in http_header_problems(header.name):
            yield invalid(path.child("httpHeaders"), header.name, problem)


def port_errors(port: int | str, path: FieldPath) -> Errors:
    """A port number or the name of one."""
    problems = port_number_problems(port) if isinstance(port, int) else port_name_problems(port)
    for problem in problems:
        yield invalid(path, port, problem)
