"""Command line, file, drop-ins and defaults become one configuration, in which every value knows where it comes from.

Precedence: flag > drop-in > file > default. Bad input raises no error: all problems are part of the result.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from glasslet.config.config_file import ConfigFile, read_config_file
from glasslet.config.defaults import (
    LEGACY,
    RESOLVED_PATHS,
    overlay,
    thresholds_left_out,
    with_defaults,
    with_eviction_defaults,
)
from glasslet.config.document import format_path
from glasslet.config.drop_ins import find_drop_ins, merge_patch, without_empty
from glasslet.config.feature_gates import FeatureGates, apply_gates
from glasslet.config.flags import parsing as flags
from glasslet.config.flags.table import FLAGS
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.config.options import Options, options_of
from glasslet.config.problem import DEFAULT_ORIGIN, ConfigProblem, Notice, OriginKind, SettingOrigin, Step
from glasslet.config.schema import Tree, build
from glasslet.config.validation import validate
from glasslet.config.validation.finding import Finding, ValidationInput
from glasslet.config.without_effect import fields_without_effect, gates_without_effect, options_without_effect

_LEGACY_ORIGIN = SettingOrigin(OriginKind.DEFAULT, "of a start without --config")
_SECRET_FIELDS = ("staticPodURLHeader",)
PathKey = tuple[str | int, ...]


class Loaded(Struct, frozen=True):
    """The outcome. With `problems` the rest is as good as it could be made, for showing only.

    `origins` is keyed by path as text (`authentication.anonymous.enabled`, `evictionHard["memory.available"]`); what is
    not in it is a default.
    """

    options: Options
    configuration: KubeletConfiguration
    gates: FeatureGates
    origins: Mapping[str, SettingOrigin]
    warnings: tuple[Notice, ...] = ()
    problems: tuple[ConfigProblem, ...] = ()
    tree: Tree = field(default_factory=dict)
    """The configuration as plain data, wire names."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """The flags that were given, by name without dashes."""

    def origin_of(self, path: str) -> SettingOrigin:
        """Where the value at `path` comes from; for a map with entries of several origins, that of the first."""
        if path in self.origins:
            return self.origins[path]
        inside = (origin for place, origin in self.origins.items() if place.startswith((path + ".", path + "[")))
        return next(inside, DEFAULT_ORIGIN)


class _Draft(Struct):
    """The configuration while it is put together."""

    tree: Tree = field(default_factory=dict)
    origins: dict[PathKey, SettingOrigin] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    problems: list[ConfigProblem] = field(default_factory=list)
    complete: bool = True
    """False once a whole file is missing: rules about the object would only add noise."""

    def forget(self, path: PathKey) -> None:
        for known in [known for known in self.origins if known[: len(path)] == path]:
            del self.origins[known]

    def record(self, path: PathKey, origin: SettingOrigin) -> None:
        self.forget(path)
        self.origins[path] = origin


def load(argv: Sequence[str], *, cgroup_v2: bool | None = None) -> Loaded:
    """Loads the configuration of a command line (without the program's name). Reads only the files it names.

    `cgroup_v2`: whether the machine has it; None checks this one.
    """
    parsed = flags.parse(argv)
    options = options_of(parsed.values)
    flag_gates = parsed.values.get("feature-gates", {})
    draft = _Draft(notices=parsed.notices, problems=parsed.problems)
    if options.config:
        _add_file(draft, options.config, flag_gates)
    else:
        draft.tree = with_defaults(LEGACY, apply_gates(flag_gates)[0])
        draft.origins.update({path: _LEGACY_ORIGIN for path, _ in leaves(LEGACY)})
    if options.config_dir:
        _add_drop_ins(draft, options.config_dir, flag_gates)
    _add_flags(draft, parsed.values)
    gates = _add_gates(draft, flag_gates)
    configuration = build(draft.tree)
    subject = ValidationInput(configuration, options, gates, _has_cgroup_v2() if cgroup_v2 is None else cgroup_v2)
    origins = {format_path(path): origin for path, origin in draft.origins.items()}
    loaded = Loaded(options, configuration, gates, origins, tuple(draft.notices), (), draft.tree, parsed.values)
    loaded = replace(loaded, warnings=(*loaded.warnings, *_without_effect(loaded, parsed.values)))
    findings = [item for item in validate(subject) if draft.complete or item.step is Step.FLAGS]
    problems = [*draft.problems, *(problem_of(item, loaded) for item in findings)]
    return replace(loaded, problems=tuple(in_order(problems)))


def in_order(problems: list[ConfigProblem]) -> list[ConfigProblem]:
    """Problems in the order of the steps of a start, without repeats."""
    steps = list(Step)
    return sorted(dict.fromkeys(problems), key=lambda problem: steps.index(problem.step))


def problem_of(finding: Finding, loaded: Loaded) -> ConfigProblem:
    """A broken rule with the value it is about and where that value comes from."""
    if finding.field.startswith("--"):
        value = getattr(loaded.options, finding.field[2:].replace("-", "_"), "")
        origin = str(SettingOrigin(OriginKind.FLAG, finding.field))
        return ConfigProblem(finding.step, finding.field, finding.message, str(value), finding.allowed, origin)
    list_field = finding.field.partition("[")[0] if finding.field not in loaded.origins else finding.field
    origin = str(loaded.origin_of(list_field))
    return ConfigProblem(
        finding.step, finding.field, finding.message, shown(value_at(loaded.tree, list_field)), finding.allowed, origin
    )


def value_at(tree: Tree, path: str) -> Any:
    """The plain value at a path, None if there is none."""
    from glasslet.config.document import parse_path

    value: Any = tree
    for step in parse_path(path):
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def shown(value: Any) -> str:
    """A plain value as short text."""
    import json

    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 500 else text[:500] + "…"


def leaves(tree: Tree, path: PathKey = ()) -> Iterator[tuple[PathKey, Any]]:
    """Every value that is no map with content, with its path. Lists are values."""
    for name, value in tree.items():
        place = (*path, name)
        if isinstance(value, dict) and value:
            yield from leaves(value, place)
        else:
            yield place, value


def masked(path: PathKey, value: Any) -> Any:
    """The value, or a mask where it may be a secret."""
    return "<masked>" if path and path[0] in _SECRET_FIELDS and value else value


def _add_file(draft: _Draft, path: str, flag_gates: dict[str, bool]) -> None:
    file = read_config_file(path, drop_in=False)
    _take_over(draft, file)
    tree = file.tree
    if tree is None:
        draft.complete = False
        tree = {}
    tree = _resolve_paths(tree, os.path.dirname(os.path.abspath(path)))
    for place, _ in leaves(tree):
        draft.origins[place] = file.origin_of(place)
    gates = apply_gates({**tree.get("featureGates", {}), **flag_gates})[0]
    _finish(draft, with_defaults(with_eviction_defaults(tree), gates), tree)


def _resolve_paths(tree: Tree, directory: str) -> Tree:
    for place in RESOLVED_PATHS:
        parent: Any = tree
        for step in place[:-1]:
            parent = parent.get(step, {})
        value = parent.get(place[-1])
        if value and not value.startswith("/"):
            patch: Any = os.path.normpath(os.path.join(directory, value))
            for step in reversed(place):
                patch = {step: patch}
            tree = overlay(tree, patch)
    return tree


def _add_drop_ins(draft: _Draft, directory: str, flag_gates: dict[str, bool]) -> None:
    paths, problems = find_drop_ins(directory)
    draft.problems.extend(problems)
    draft.complete = draft.complete and not problems
    tree = without_empty(draft.tree)
    for path in paths:
        file = read_config_file(path, drop_in=True)
        _take_over(draft, file)
        if file.tree is None:
            draft.complete = False
            continue
        tree = merge_patch(tree, file.tree)
        for place, value in leaves(file.tree):
            if value is None:
                draft.forget(place)
            elif value != {}:
                draft.record(place, file.origin_of(place))
    gates = apply_gates({**tree.get("featureGates", {}), **flag_gates})[0]
    _finish(draft, with_defaults(tree, gates), tree)


def _take_over(draft: _Draft, file: ConfigFile) -> None:
    draft.notices.extend(file.notices)
    draft.problems.extend(file.problems)


def _finish(draft: _Draft, full: Tree, given: Tree) -> None:
    """Keeps the defaulted tree; a value that defaulting replaced no longer comes from where it stood."""
    draft.tree = full
    after = dict(leaves(full))
    for place, value in leaves(given):
        if after.get(place, value) != value and place in draft.origins:
            draft.origins[place] = SettingOrigin(OriginKind.DEFAULT, f"(replaces {shown(masked(place, value))})")


def _add_flags(draft: _Draft, values: dict[str, Any]) -> None:
    for name, value in values.items():
        flag = FLAGS[name]
        if not flag.field or name == "feature-gates":
            continue
        path: PathKey = tuple(flag.field.split("."))
        parent: Any = draft.tree
        for step in path[:-1]:
            # Trees are shared with the table of defaults: copy what is about to change.
            parent[step] = dict(parent[step])
            parent = parent[step]
        if name == "vmodule":
            value = [*(parent[path[-1]] or []), *value]
        elif name == "seccomp-default" and parent[path[-1]] and not value:
            continue
        parent[path[-1]] = value
        draft.record(path, SettingOrigin(OriginKind.FLAG, f"--{name}"))


def _add_gates(draft: _Draft, flag_gates: dict[str, bool]) -> FeatureGates:
    settings = {**draft.tree["featureGates"], **flag_gates}
    draft.tree["featureGates"] = settings
    for name in flag_gates:
        draft.record(("featureGates", name), SettingOrigin(OriginKind.FLAG, "--feature-gates"))
    gates, findings = apply_gates(settings)
    for finding in findings:
        path = ("featureGates", finding.name)
        field_name, origin = format_path(path), str(draft.origins.get(path, DEFAULT_ORIGIN))
        if finding.error:
            value = str(settings[finding.name]).lower()
            draft.problems.append(ConfigProblem(Step.GATES, field_name, finding.message, value, origin=origin))
        else:
            draft.notices.append(Notice(finding.message, field_name, origin))
    return gates


def _without_effect(loaded: Loaded, flag_values: Mapping[str, Any]) -> Iterator[Notice]:
    defaults = with_defaults(with_eviction_defaults({}), loaded.gates)
    for path, text in fields_without_effect(loaded.tree, defaults):
        origin = loaded.origin_of(path)
        if origin.kind is not OriginKind.DEFAULT:
            yield Notice(text, path, str(origin))
    for flag, text in options_without_effect(flag_values):
        yield Notice(text, flag, str(SettingOrigin(OriginKind.FLAG, flag)))
    if text := thresholds_left_out(loaded.tree):
        yield Notice(text, "evictionHard", str(loaded.origin_of("evictionHard")))
    for name, text in gates_without_effect(loaded.tree["featureGates"]):
        path = format_path(("featureGates", name))
        yield Notice(text, path, str(loaded.origin_of(path)))


def _has_cgroup_v2() -> bool:
    return os.path.exists("/sys/fs/cgroup/cgroup.controllers")
