"""The text of a health answer, as the Go components write it. Pure but for the checks, which run once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from glasslet.server.protocols import HealthCheck

Observe = Callable[[str, bool], None]
"""Called with each check's name and whether it passed."""


def _ignore(_name: str, _passed: bool) -> None:
    return None


def report(
    checks: Sequence[HealthCheck],
    *,
    excluded: Collection[str] = (),
    verbose: bool = False,
    show_reasons: bool = False,
    observe: Observe = _ignore,
) -> tuple[int, str]:
    """Status and body of `/healthz`. Reasons are withheld unless `show_reasons`."""
    lines: list[str] = []
    failed = False
    for check in checks:
        if check.name in excluded:
            lines.append(f"[+]{check.name} excluded: ok")
            continue
        problem = check.check()
        observe(check.name, problem is None)
        if problem is None:
            lines.append(f"[+]{check.name} ok")
        else:
            failed = True
            lines.append(f"[-]{check.name} failed: {problem if show_reasons else 'reason withheld'}")
    unknown = sorted(set(excluded) - {check.name for check in checks})
    if unknown:
        quoted = ",".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
    if failed:
        return 500, "\n".join([*lines, "healthz check failed"]) + "\n"
    return (200, "\n".join([*lines, "healthz check passed"]) + "\n") if verbose else (200, "ok")


def single(check: HealthCheck) -> tuple[int, str]:
    """Status and body of `/healthz/<check>`."""
    problem = check.check()
    return (200, "ok") if problem is None else (500, f"internal server error: {problem}\n")
