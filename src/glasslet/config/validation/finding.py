"""The input of a rule and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from glasslet.config.feature_gates import FeatureGates
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.config.options import Options
from glasslet.config.problem import Step


class ValidationInput(Struct, frozen=True):
    """The input of all rules. `cgroup_v2`: whether the machine has the unified cgroup hierarchy."""

    configuration: KubeletConfiguration
    options: Options
    gates: FeatureGates
    cgroup_v2: bool = True


class Finding(Struct, frozen=True):
    """A broken rule. `field` is a wire path or a flag; `message` the complete text."""

    field: str
    message: str
    allowed: str = ""
    step: Step = Step.VALIDATE


Rule = Callable[[ValidationInput], Iterator[Finding]]


def invalid(field: str, reason: str, allowed: str = "") -> Finding:
    """A finding of the validation step, in upstream's form: `invalid configuration: ...`."""
    return Finding(field, f"invalid configuration: {reason}", allowed)


def refused(field: str, message: str, allowed: str = "") -> Finding:
    """A finding of a check that upstream makes while it starts."""
    return Finding(field, message, allowed, Step.START)


def quoted(values: tuple[str, ...] | list[str]) -> str:
    """`"a", "b" or "c"`."""
    texts = [f'"{value}"' for value in values]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
