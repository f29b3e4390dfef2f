"""The checks that say whether the agent itself is well: for `/healthz`, the health port, and the service manager's
watchdog."""

from __future__ import annotations

from collections.abc import Callable

from glasslet.server.protocols import PING, HealthCheck


class Vitals:
    """Checks are added while the agent is built; until then an agent that answers is well."""

    def __init__(self, *checks: HealthCheck) -> None:
        self._checks = [PING, *checks]

    @property
    def checks(self) -> tuple[HealthCheck, ...]:
        """In the order in which they were added."""
        return tuple(self._checks)

    def add(self, *checks: HealthCheck) -> None:
        """More checks, from now on."""
        self._checks += checks

    def problem(self) -> str | None:
        """The first check that fails, and why."""
        for check in self._checks:
            if (problem := check.check()) is not None:
                return f"{check.name}: {problem}"
        return None


class Startup:
    """Moves from `starting` over any number of reasons to finished. A later failure can take it back. `changed` gets
    each new reason, None once the agent is up."""

    def __init__(self, changed: Callable[[str | None], None] = lambda _: None) -> None:
        self._reason: str | None = "the kubelet is starting"
        self._changed = changed

    def waiting_for(self, what: str) -> None:
        """Names the present wait of the start (`waiting for the container runtime at /run/x.sock`)."""
        self._reason = what
        self._changed(what)

    def finished(self) -> None:
        """The agent is up."""
        self._reason = None
        self._changed(None)

    def check(self) -> HealthCheck:
        """The check `startup`."""
        return HealthCheck("startup", lambda: self._reason)


def log_check(problem: Callable[[], str | None]) -> HealthCheck:
    """Fails while the log cannot be written."""
    return HealthCheck("log", problem)


def runtime_check(problem: Callable[[], str | None]) -> HealthCheck:
    """Fails when the runtime was silent for three minutes. It is no vital check: a restart of the agent would not
    help."""
    return HealthCheck("pleg", problem)
