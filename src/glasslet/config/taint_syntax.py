"""Names, label values and taints as the API machinery writes them."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def qualified_name_problem(key: str) -> str:
    """Why a key is no qualified name (`name` or `dns.prefix/name`); empty if it is one."""
    prefix, slash, name = key.rpartition("/")
    if key.count("/") > 1:
        return "a qualified name has at most one slash"
    if slash and (len(prefix) > 253 or not all(_LABEL.fullmatch(part) for part in prefix.split("."))):
        return "the prefix must be a lower-case DNS subdomain of at most 253 characters"
    if not name:
        return "the name part must be non-empty"
    if len(name) > 63 or not _NAME.fullmatch(name):
        return "the name part must be at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
    return ""


def label_value_problem(value: str) -> str:
    """Why a text is no label value; empty if it is one."""
    if value and (len(value) > 63 or not _NAME.fullmatch(value)):
        return "a label value must be at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
    return ""


def parse_taints(specs: list[str]) -> list[dict[str, str]]:
    """Taints of `key=value:effect` or `key:effect`; one ending in `-` is checked and dropped. Raises ValueError."""
    made: list[dict[str, str]] = []
    seen = set()
    for spec in specs:
        taint = _parse_taint(spec.removesuffix("-"))
        if spec.endswith("-"):
            continue
        if not taint["effect"]:
            raise ValueError(f"invalid taint spec: {spec[:200]}, want key=value:effect")
        identity = (taint["key"], taint["effect"])
        if identity in seen:
            raise ValueError(f"duplicated taints with the same key and effect: {spec[:200]}")
        seen.add(identity)
        made.append(taint)
    return made


def _parse_taint(spec: str) -> dict[str, str]:
    shown = spec[:200]
    head, colon, effect = spec.partition(":")
    key, _, value = head.partition("=") if colon else (head, "", "")
    if colon and effect not in EFFECTS:
        raise ValueError(f"invalid taint effect: {effect[:100]}, want one of {', '.join(EFFECTS)}")
    reason = qualified_name_problem(key) or label_value_problem(value)
    if reason:
        raise ValueError(f"invalid taint spec: {shown}, {reason}")
    return {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}
