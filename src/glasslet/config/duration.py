"""Go durations (`1m30s`, `100ms`): the way every time span of the configuration is written."""

from __future__ import annotations

import re
from typing import Any, Final, Self

_SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND,
}  # fmt: skip
_PART: Final = r"(?:(\d+)(?:\.(\d*))?|\.(\d+))(ns|us|µs|μs|ms|s|m|h)"
_TEXT: Final = re.compile(f"[+-]?(?:{_PART})+", re.ASCII)
_PARTS: Final = re.compile(_PART, re.ASCII)
_LARGEST: Final = 2**63 - 1


class Duration(float):
    """A time span: a float in seconds, exact in `nanoseconds`, printed as Go prints it (`1m0s`). Any sign."""

    __slots__ = ("nanoseconds",)
    nanoseconds: int

    @classmethod
    def of_nanoseconds(cls, nanoseconds: int) -> Self:
        """The span of that many nanoseconds."""
        made = cls(nanoseconds / _SECOND)
        made.nanoseconds = nanoseconds
        return made

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads Go's form. Raises ValueError naming the text and what is allowed."""
        body = text.lstrip("+-")
        if body == "0" and len(text) - len(body) <= 1:
            return cls.of_nanoseconds(0)
        if len(text) > 100 or not _TEXT.fullmatch(text):
            raise ValueError(f"{text[:100]!r} is no duration, want numbers with ns, us, ms, s, m or h, such as 1m30s")
        total = 0
        for whole, fraction, bare_fraction, unit in _PARTS.findall(body):
            part = fraction or bare_fraction
            total += int(whole or 0) * _UNITS[unit] + (int(part) * _UNITS[unit] // 10 ** len(part) if part else 0)
        if total > _LARGEST:
            raise ValueError(f"{text!r} is out of range for a duration, want less than 2562047h")
        return cls.of_nanoseconds(-total if text.startswith("-") else total)

    def __str__(self) -> str:
        nanoseconds = abs(self.nanoseconds)
        sign = "-" if self.nanoseconds < 0 else ""
        if nanoseconds == 0:
            return "0s"
        if nanoseconds < _SECOND:
            for unit in ("ms", "µs", "ns"):
                if nanoseconds >= _UNITS[unit]:
                    return f"{sign}{_decimal(nanoseconds, _UNITS[unit])}{unit}"
        minutes, rest = divmod(nanoseconds, _UNITS["m"])
        hours, minutes = divmod(minutes, 60)
        seconds = f"{_decimal(rest, _SECOND)}s"
        if hours:
            return f"{sign}{hours}h{minutes}m{seconds}"
        return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"

    def __repr__(self) -> str:
        return f"Duration({self})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Duration.of_nanoseconds, (self.nanoseconds,))


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)
