"""`kubelet --help`: every flag, grouped; needs nothing but the tables."""

from __future__ import annotations

import textwrap

from glasslet.config.flags.table import CADVISOR_GROUP, CONFIG_FILE, GROUPS, WINDOWS_ONLY, Flag, deprecation
from glasslet.config.gate_table import GATES, Stage

_INTRODUCTION = """\
The kubelet runs the pods of one node. It takes them from the API server (--kubeconfig), from a folder or file
(--pod-manifest-path) or from a URL (--manifest-url), and keeps their containers running and healthy.

Flags beat the configuration file (--config) and its drop-ins (--config-dir). Flags marked * are better set there.
`kubelet check -- FLAGS...` reports every problem of a command line without a start.

Usage:
  kubelet [flags]
"""
KINDS = {
    "bool": "", "map": "name=value,...", "map-entry": "name=value", "thresholds": "signal<quantity,...",
    "labels": "key=value,...", "gates": "name=true|false,...", "headers": "name:value,...",
    "taints": "key=value:effect,...", "reserved-memory": "node:type=quantity,...", "vmodule": "pattern=N,...",
    "level": "N", "int": "N", "int32": "N", "int64": "N", "strings": "text,...", "string": "text", "version": "version",
}  # fmt: skip
_SHORT = {"v": "-v, ", "help": "-h, "}


def help_text() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for group, flags in GROUPS.items():
        parts.append(f"{group}:")
        parts.extend(
            _flag_lines(flag, mention=group != CADVISOR_GROUP) for flag in flags if flag.name not in WINDOWS_ONLY
        )
        parts.append("")
    parts.append("Gates of --feature-gates (alpha and beta; a GA gate needs no setting):")
    parts.extend(_gate_lines())
    return "\n".join(parts)


def _flag_lines(flag: Flag, *, mention: bool) -> str:
    instead = deprecation(flag)
    kind = KINDS.get(flag.kind, flag.kind)
    mark = " *" if instead == CONFIG_FILE else ""
    head = f"  {_SHORT.get(flag.name, '')}--{flag.name}{f' {kind}' if kind else ''}{mark}"
    text = flag.meaning[:1].upper() + flag.meaning[1:]
    if flag.default and not (flag.kind == "bool" and flag.default == "false"):
        text += f" (default {flag.default})"
    if flag.field and mark:
        text += f" [{flag.field}]"
    if instead and instead != CONFIG_FILE and mention:
        text += f" (DEPRECATED: {instead})"
    return f"{head}\n{textwrap.fill(text, 112, initial_indent='        ', subsequent_indent='        ')}"


def _gate_lines() -> list[str]:
    names = sorted(name for name, spec in GATES.items() if spec.stage in (Stage.ALPHA, Stage.BETA))
    return [f"  {name}={'true' if GATES[name].default else 'false'} ({GATES[name].stage})" for name in names]
