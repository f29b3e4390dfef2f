"""Rules that many fields share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from glasslet.api.field_errors import FieldError, FieldPath, invalid, not_supported, required
from glasslet.api.formats import MAX_INT32, in_range_problems, label_value_problems, qualified_name_problems

Errors = Iterator[FieldError]
FormatRule = Callable[[str], list[str]]
_MODE_TEXT = "must be a number between 0 and 0777 (octal), both inclusive"


def formatted(value: str, path: FieldPath, rule: FormatRule) -> Errors:
    """The text follows a format of `glasslet.api.formats`."""
    for problem in rule(value):
        yield invalid(path, value, problem)


def named(value: str, path: FieldPath, rule: FormatRule) -> Errors:
    """As `formatted`, and not empty."""
    if not value:
        yield required(path)
    else:
        yield from formatted(value, path, rule)


def present(value: object, path: FieldPath) -> Errors:
    """Not empty."""
    if not value:
        yield required(path)


def one_of(value: str, path: FieldPath, allowed: tuple[str, ...]) -> Errors:
    """Not empty, and one of a closed set."""
    if not value:
        yield required(path)
    elif value not in allowed:
        yield not_supported(path, value, allowed)


def file_mode(mode: int | None, path: FieldPath) -> Errors:
    """Permission bits only."""
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid(path, mode, _MODE_TEXT)


def int32(value: int, path: FieldPath) -> Errors:
    """Fits the 32 bits that the API gives the field."""
    for problem in in_range_problems(value, -MAX_INT32 - 1, MAX_INT32):
        yield invalid(path, value, problem)


def not_negative(value: int, path: FieldPath) -> Errors:
    """Zero or more."""
    if value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")


def positive(value: int, path: FieldPath) -> Errors:
    """One or more."""
    if value <= 0:
        yield invalid(path, value, "must be greater than zero")


def no_backsteps(text: str, path: FieldPath) -> Errors:
    """No `..` between slashes."""
    if ".." in text.split("/"):
        yield invalid(path, text, "must not contain '..'")


def below_folder(text: str, path: FieldPath) -> Errors:
    """A relative path that stays inside its folder."""
    if text.startswith("/"):
        yield invalid(path, text, "must be a relative path")
    yield from no_backsteps(text, path)


def file_below_volume(text: str, path: FieldPath) -> Errors:
    """As `below_folder`, and not one of the names (`..data`) that atomic updates of volumes use."""
    yield from below_folder(text, path)
    if text.startswith("..") and not text.startswith("../"):
        yield invalid(path, text, "must not start with '..'")


def labels(values: Mapping[str, str], path: FieldPath) -> Errors:
    """Label keys and values."""
    for key, value in values.items():
        yield from formatted(key, path, qualified_name_problems)
        yield from formatted(value, path, label_value_problems)
