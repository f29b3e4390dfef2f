"""The engine of `glasslet check`: every problem at once, and the merged configuration with the origin of each value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec
from msgspec import Struct

from glasslet.config.document import format_path
from glasslet.config.failure import first_line
from glasslet.config.loading import Loaded, in_order, leaves, load, masked, problem_of, shown
from glasslet.config.machine import MachineFacts, read_machine
from glasslet.config.problem import DEFAULT_ORIGIN, ConfigProblem, Notice
from glasslet.config.validation.finding import Finding, refused
from glasslet.config.validation.machine import validate_on


class EffectiveRow(Struct, frozen=True):
    """One value of the merged configuration; `value` is plain data, masked if it may be secret."""

    path: str
    value: Any
    origin: str


class CheckReport(Struct, frozen=True):
    """The answer. The kubelet would start with this command line exactly if `problems` is empty."""

    problems: tuple[ConfigProblem, ...]
    warnings: tuple[Notice, ...]
    effective: tuple[EffectiveRow, ...]

    def as_plain(self, *, effective: bool) -> dict[str, Any]:
        """Plain data for JSON: `problems`, `warnings` and, if asked for, `effective`."""
        made: dict[str, Any] = {
            "problems": [asdict(problem) for problem in self.problems],
            "warnings": [asdict(notice) for notice in self.warnings],
        }
        if effective:
            made["effective"] = [msgspec.structs.asdict(row) for row in self.effective]
        return made


def check(argv: Sequence[str], *, machine: MachineFacts | None = None) -> CheckReport:
    """Checks flags, file, drop-ins and machine. Never raises for bad input. `machine` None reads this one."""
    loaded = load(argv, cgroup_v2=machine.cgroup_v2 if machine else None)
    problems = in_order([*loaded.problems, *machine_problems(loaded, machine)])
    return CheckReport(tuple(problems), loaded.warnings, tuple(effective_rows(loaded)))


def machine_problems(loaded: Loaded, machine: MachineFacts | None = None) -> list[ConfigProblem]:
    """The problems that keep a configuration from starting on this machine."""
    if machine is None:
        configuration = loaded.configuration
        paths = (
            configuration.authentication.x509.client_ca_file,
            configuration.tls_cert_file,
            configuration.tls_private_key_file,
        )
        machine = read_machine(tuple(path for path in paths if path))
    findings = [*validate_on(machine, loaded.configuration), *_credential_provider_findings(loaded)]
    return [problem_of(finding, loaded) for finding in findings]


def _credential_provider_findings(loaded: Loaded) -> list[Finding]:
    options = loaded.options
    if not (options.image_credential_provider_config and options.image_credential_provider_bin_dir):
        return []
    from glasslet.config.credential_providers import TOKENS_GATE, read_credential_providers

    found = read_credential_providers(
        options.image_credential_provider_config,
        options.image_credential_provider_bin_dir,
        tokens=loaded.gates.enabled(TOKENS_GATE),
    )
    return [refused("--image-credential-provider-config", problem) for problem in found.problems]


def effective_rows(loaded: Loaded) -> list[EffectiveRow]:
    """Every value, by path; options that are no part of the object follow as flags."""
    rows = []
    for path, value in leaves(loaded.tree):
        text = format_path(path)
        origin = loaded.origins.get(text) or _origin_above(loaded, path)
        rows.append(EffectiveRow(text, masked(path, value), str(origin)))
    return rows


def _origin_above(loaded: Loaded, path: tuple[str | int, ...]) -> Any:
    """A flag that replaces a whole map owns every entry of it."""
    for length in range(len(path) - 1, 0, -1):
        if found := loaded.origins.get(format_path(path[:length])):
            return found
    return DEFAULT_ORIGIN


def as_text(report: CheckReport, *, effective: bool) -> str:
    """The report as plain text; the CLI draws its own table."""
    lines = [f"problem: {first_line(item.message)}{_details(item)}" for item in report.problems]
    lines += [
        f"warning: {first_line(item.message)}{f' [{item.origin}]' if item.origin else ''}" for item in report.warnings
    ]
    if effective:
        lines += [f"{row.path} = {shown(row.value)}  # {row.origin}" for row in report.effective]
    if not report.problems:
        lines.append("ok: a kubelet would start with this command line")
    return "\n".join(lines)


def _details(problem: ConfigProblem) -> str:
    details = [f"allowed: {problem.allowed}"] if problem.allowed else []
    details += [problem.origin] if problem.origin else []
    return f" [{'; '.join(details)}]" if details else ""
