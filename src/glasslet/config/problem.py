"""Problems of a configuration, and the origins of its values.

Dataclasses, unlike the other values: `kubelet --help` and `--version` load this module, and nothing heavy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OriginKind(StrEnum):
    """The four places a value can come from; a later one beats the earlier ones."""

    DEFAULT = "default"
    FILE = "file"
    DROP_IN = "drop-in"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where a value comes from. `place` is `/etc/kubelet.yaml:12`, `--max-pods` or a remark, empty if there is none."""

    kind: OriginKind
    place: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.place}" if self.place else str(self.kind)


DEFAULT_ORIGIN = SettingOrigin(OriginKind.DEFAULT)


class Step(StrEnum):
    """The steps of a start, in order: the problems of the first step that has any are what the kubelet exits with."""

    PARSE = "parse"
    """Reading the command line."""
    FLAGS = "flags"
    """Checks of the flags that are no configuration fields."""
    LOAD = "load"
    """Reading and decoding the file of --config."""
    MERGE = "merge"
    """Reading and merging the files of --config-dir."""
    GATES = "gates"
    """Feature gates."""
    LOGGING = "logging"
    """The logging section, checked before the rest."""
    VALIDATE = "validate"
    """The rules of the KubeletConfiguration object."""
    START = "start"
    """Checks that upstream makes one by one while it starts."""


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing that is wrong. `field` is a path of the configuration or a flag; `message` the complete text for people
    (upstream's wording where tools match on it); `value` the offending value as text, masked if it may be secret."""

    step: Step
    field: str
    message: str
    value: str = ""
    allowed: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a start survives but people should know: a deprecated flag, an unknown field. One line of text."""

    message: str
    field: str = ""
    origin: str = ""
