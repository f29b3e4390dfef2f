"""Snapshots of what a runtime holds, with quiet defaults: a pod with one ready sandbox and one running container."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod, ObservedSandbox

START = datetime(2026, 1, 1, tzinfo=UTC)


def observed_container(name: str = "main", attempt: int = 0, **changes: Any) -> ObservedContainer:
    """Running, made `attempt` minutes after START; the id is `<name>-<attempt>` unless given."""
    created = START + timedelta(minutes=attempt)
    facts: dict[str, Any] = {
        "id": ContainerID(f"{name}-{attempt}"),
        "name": name,
        "attempt": attempt,
        "phase": ContainerPhase.RUNNING,
        "sandbox_id": SandboxID("sandbox-0"),
        "created_at": created,
        "started_at": created,
    }
    return ObservedContainer(**(facts | changes))


def exited_container(name: str = "main", attempt: int = 0, code: int = 0, **changes: Any) -> ObservedContainer:
    """As `observed_container`, ended ten seconds after its start."""
    created = changes.get("created_at", START + timedelta(minutes=attempt))
    ended = {"phase": ContainerPhase.EXITED, "exit_code": code, "finished_at": created + timedelta(seconds=10)}
    return observed_container(name, attempt, **(ended | changes))


def observed_sandbox(attempt: int = 0, **changes: Any) -> ObservedSandbox:
    """Ready, with the address 10.0.0.1; the id is `sandbox-<attempt>` unless given."""
    facts: dict[str, Any] = {
        "id": SandboxID(f"sandbox-{attempt}"),
        "attempt": attempt,
        "ready": True,
        "created_at": START + timedelta(minutes=attempt),
        "ips": ("10.0.0.1",),
    }
    return ObservedSandbox(**(facts | changes))


def observed_pod(
    *containers: ObservedContainer, sandboxes: tuple[ObservedSandbox, ...] | None = None, **changes: Any
) -> ObservedPod:
    """A pod with these containers (newest first), one ready sandbox unless others are given."""
    facts: dict[str, Any] = {
        "uid": PodUID("uid-1"),
        "name": "web",
        "namespace": "default",
        "sandboxes": (observed_sandbox(),) if sandboxes is None else sandboxes,
        "containers": containers,
    }
    return ObservedPod(**(facts | changes))
