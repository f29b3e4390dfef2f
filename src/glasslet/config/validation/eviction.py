"""Rules about eviction thresholds (upstream checks them while it starts)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation

from glasslet.api.quantity import Quantity
from glasslet.config.document import format_path
from glasslet.config.duration import Duration
from glasslet.config.validation.finding import Finding, ValidationInput, refused

SIGNALS = (
    "memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
    "pid.available", "allocatableMemory.available", "containerfs.available", "containerfs.inodesFree",
)  # fmt: skip
_THRESHOLD = "a quantity above 0, or 0% to 100%"
_RECLAIM = "a quantity of 0 or more, or a percentage above 0%"


def check_eviction(subject: ValidationInput) -> Iterator[Finding]:
    """All four maps, and a grace period for every soft threshold."""
    configuration = subject.configuration
    for field, thresholds in (
        ("evictionHard", configuration.eviction_hard),
        ("evictionSoft", configuration.eviction_soft),
    ):
        for signal, text in _known_signals(thresholds):
            if reason := _threshold_problem(signal, text):
                yield refused(format_path((field, signal)), reason, _THRESHOLD)
        yield from _unknown_signals(field, thresholds)
    grace = configuration.eviction_soft_grace_period
    yield from _unknown_signals("evictionSoftGracePeriod", grace)
    for signal, text in _known_signals(grace):
        if reason := _grace_problem(text):
            yield refused(format_path(("evictionSoftGracePeriod", signal)), reason, "a duration of 0s or longer")
    for signal, text in _known_signals(configuration.eviction_soft):
        if signal not in grace and text not in ("0%", "100%"):
            message = f"grace period must be specified for the soft eviction threshold {signal}"
            yield refused("evictionSoftGracePeriod", message, f"an entry for {signal}")
    yield from _unknown_signals("evictionMinimumReclaim", configuration.eviction_minimum_reclaim)
    for signal, text in _known_signals(configuration.eviction_minimum_reclaim):
        if reason := _reclaim_problem(signal, text):
            yield refused(format_path(("evictionMinimumReclaim", signal)), reason, _RECLAIM)


def _known_signals(thresholds: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(signal, text) for signal, text in thresholds.items() if signal in SIGNALS]


def _unknown_signals(field: str, thresholds: Mapping[str, str]) -> Iterator[Finding]:
    for signal in thresholds:
        if signal not in SIGNALS:
            text = f"unsupported eviction signal {signal}"
            yield refused(format_path((field, signal)), text, ", ".join(SIGNALS[:6]))


def _percentage(text: str) -> Decimal | None:
    try:
        value = Decimal(text.rstrip("%"))
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def _threshold_problem(signal: str, text: str) -> str:
    if text.endswith("%"):
        percentage = _percentage(text)
        if percentage is None:
            return f"eviction percentage threshold {signal} is no number: {text[:100]}"
        return "" if 0 <= percentage <= 100 else f"eviction percentage threshold {signal} must be 0% to 100%: {text}"
    try:
        amount = Quantity.parse(text)
    except ValueError:
        return f"eviction threshold {signal} is no quantity: {text[:100]}"
    return "" if amount.nano_value() > 0 else f"eviction threshold {signal} must be positive: {text}"


def _grace_problem(text: str) -> str:
    try:
        return "" if Duration.parse(text) >= 0 else f"eviction grace period {text} must not be negative"
    except ValueError:
        return f"eviction grace period {text[:100]!r} is no duration"


def _reclaim_problem(signal: str, text: str) -> str:
    if text.endswith("%"):
        percentage = _percentage(text)
        good = percentage is not None and percentage > 0
        return "" if good else f"eviction percentage minimum reclaim {signal} must be positive: {text[:100]}"
    try:
        amount = Quantity.parse(text)
    except ValueError:
        return f"eviction minimum reclaim {signal} is no quantity: {text[:100]}"
    return "" if amount.nano_value() >= 0 else f"negative eviction minimum reclaim specified for {signal}"
