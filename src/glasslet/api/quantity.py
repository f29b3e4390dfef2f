"""Quantity: an exact amount with Kubernetes' suffixes (apimachinery resource.Quantity).

An amount is a whole number of billionths: the wire format has nothing smaller (finer amounts are rounded up, away from
zero), so every operation is integer arithmetic. A quantity keeps the family of suffixes in which it was written and
prints in that family's canonical form: no fraction, the largest suffix that loses nothing.

Texts of any length and exponent are read in bounded time and memory: amounts above 10^100 become 10^100, and `value`
and `milli_value` stay within int64. Upstream differs only where it overflows: it wraps exponents at 32 bits and such
values at 64.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from enum import StrEnum
from functools import lru_cache, total_ordering
from typing import Any

_BILLION = 10**9
_TEXT = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?(?:[eE]([+-]?[0-9]++)|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?)")
_DECIMAL_POWER = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL_POWER.items()}
_BINARY_SUFFIX = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_BINARY_FACTOR = {suffix: 1024**power for power, suffix in enumerate(_BINARY_SUFFIX) if suffix}
_MAX_BINARY = (2**63 - 1) * _BILLION
"""Upstream caps a quantity with a binary suffix at the largest int64."""
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
_MAX_POWER = 100
_MAX_NANO: int = 10**_MAX_POWER * _BILLION
_MAX_DIGITS = 400
"""Digits that can matter: 100 before the point, and after it more than 2^60 has factors of two."""
_MAX_CACHED = 64
_MAX_SHOWN = 100
_EXACT = Context(prec=_MAX_POWER + 20)


class Format(StrEnum):
    """The family of suffixes in which a quantity is printed."""

    DECIMAL_SI = "DecimalSI"
    """`500m`, `12M`."""
    BINARY_SI = "BinarySI"
    """`12Mi`; amounts below 1024, and those with a fraction, print as decimal."""
    DECIMAL_EXPONENT = "DecimalExponent"
    """`12e6`."""


@total_ordering
class Quantity:
    """An exact amount. Equal amounts are equal, however they were written (`1`, `1000m`). Immutable."""

    __slots__ = ("_nano", "format")

    _nano: int
    format: Format

    def __init__(self, amount: Decimal | int, format: Format = Format.DECIMAL_SI) -> None:  # noqa: A002 - upstream's word
        self._nano = (
            amount * _BILLION if isinstance(amount, int) else _away_from_zero(*(amount * _BILLION).as_integer_ratio())
        )
        self.format = format

    @classmethod
    def of_nano(cls, nano: int, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002
        """A quantity of that many billionths."""
        made = cls.__new__(cls)
        made._nano = nano
        made.format = format
        return made

    @classmethod
    def of_milli(cls, milli: int) -> Quantity:
        """A quantity of that many thousandths."""
        return cls.of_nano(milli * 10**6)

    @classmethod
    def parse(cls, text: str | int | float) -> Quantity:
        """Reads `500m`, `1.5Gi`, `1e3`, 2. Raises ValueError naming the text and what is allowed."""
        text = text if isinstance(text, str) else str(text)
        return _parse_cached(text) if len(text) <= _MAX_CACHED else _parse(text)

    @property
    def amount(self) -> Decimal:
        """The amount in whole units, exact."""
        return Decimal(self._nano).scaleb(-9, _EXACT)

    def value(self) -> int:
        """Whole units, rounded away from zero, within int64."""
        return _int64(_away_from_zero(self._nano, _BILLION))

    def milli_value(self) -> int:
        """Thousandths, rounded away from zero, within int64."""
        return _int64(_away_from_zero(self._nano, 10**6))

    def nano_value(self) -> int:
        """Billionths, exact."""
        return self._nano

    def rounded_up_to_milli(self) -> Quantity:
        """The amount as the API server keeps it for a resource: no finer than a thousandth."""
        milli = _away_from_zero(self._nano, 10**6)
        return self if self._nano % 10**6 == 0 else Quantity.of_nano(milli * 10**6, self.format)

    def __float__(self) -> float:
        return self._nano / _BILLION

    def __bool__(self) -> bool:
        return self._nano != 0

    def __add__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity.of_nano(self._nano + other._nano, self.format if self._nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity.of_nano(self._nano - other._nano, self.format if self._nano else other.format)

    def __mul__(self, times: int) -> Quantity:
        if not isinstance(times, int):
            return NotImplemented
        return Quantity.of_nano(self._nano * times, self.format)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity.of_nano(-self._nano, self.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self._nano == other._nano

    def __lt__(self, other: Quantity) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._nano < other._nano

    def __hash__(self) -> int:
        return hash(self._nano)

    def __copy__(self) -> Quantity:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Quantity:
        return self

    def __str__(self) -> str:
        """The canonical form."""
        nano = self._nano
        if nano == 0:
            return "0"
        if self.format is Format.BINARY_SI and abs(nano) >= 1024 * _BILLION and nano % _BILLION == 0:
            value, power = nano // _BILLION, 0
            while value % 1024 == 0 and power < len(_BINARY_SUFFIX) - 1:
                value, power = value // 1024, power + 1
            return f"{value}{_BINARY_SUFFIX[power]}"
        exponential = self.format is Format.DECIMAL_EXPONENT
        value, exponent = nano, -9
        while value % 1000 == 0 and (exponential or exponent < 18):
            value, exponent = value // 1000, exponent + 3
        if exponential:
            return f"{value}e{exponent}" if exponent else str(value)
        return f"{value}{_DECIMAL_SUFFIX[exponent]}"

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


def _away_from_zero(numerator: int, denominator: int) -> int:
    """Division that rounds away from zero; the denominator is positive."""
    return -(-numerator // denominator) if numerator >= 0 else numerator // denominator


def _int64(value: int) -> int:
    return min(max(value, _MIN_INT64), _MAX_INT64)


def _parse(text: str) -> Quantity:
    match = _TEXT.fullmatch(text.strip())
    if match is None or not match[0]:
        raise _refused(text)
    sign, whole, fraction, exponent, suffix = match.groups(default="")
    form, power, factor = Format.DECIMAL_SI, 0, 1
    if exponent:
        form, power = Format.DECIMAL_EXPONENT, _exponent(exponent, text)
    elif suffix in _BINARY_FACTOR:
        form, factor = Format.BINARY_SI, _BINARY_FACTOR[suffix]
    else:
        power = _DECIMAL_POWER[suffix]
    nano = _nano(whole, fraction, power, factor)
    if form is Format.BINARY_SI:
        nano = min(nano, _MAX_BINARY)
        if 0 < nano < _BILLION:
            form = Format.DECIMAL_SI
    return Quantity.of_nano(-nano if sign == "-" else nano, form)


_parse_cached = lru_cache(maxsize=1024)(_parse)


def _nano(whole: str, fraction: str, power: int, factor: int) -> int:
    """`whole.fraction * 10^power * factor` in billionths, rounded up; no more than `_MAX_NANO`."""
    whole = whole.lstrip("0")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return 0
    # The amount is 0.DIGITS * 10^magnitude * factor, and DIGITS does not begin with a zero.
    magnitude = (len(whole) or len(digits) - len(fraction)) + power
    if magnitude > _MAX_POWER + 1:
        return _MAX_NANO
    if magnitude < -40:
        return 1
    if len(digits) > _MAX_DIGITS:
        # Of the digits that are cut only one fact matters to rounding up: whether they are more than zero.
        digits = digits[:_MAX_DIGITS] + ("1" if digits[_MAX_DIGITS:].strip("0") else "")
    shift = 9 + magnitude - len(digits)
    amount = int(digits) * factor
    scale: int = 10 ** abs(shift)
    return min(amount * scale if shift >= 0 else _away_from_zero(amount, scale), _MAX_NANO)


def _exponent(exponent: str, text: str) -> int:
    """The power of ten after `e`; as upstream's, it must fit into 64 bits."""
    digits = exponent.lstrip("+-").lstrip("0") or "0"
    if len(digits) > 19:
        raise _refused(text)
    power = -int(digits) if exponent.startswith("-") else int(digits)
    if power != _int64(power):
        raise _refused(text)
    return power


def _refused(text: str) -> ValueError:
    shown = repr(text) if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]!r}... ({len(text)} characters)"
    return ValueError(
        f"{shown} is not a quantity: want a number with an optional suffix"
        " n u m k M G T P E Ki Mi Gi Ti Pi Ei or exponent (500m, 1.5Gi, 2, 1e3)"
    )


ZERO = Quantity(0)
"""No amount; the start of sums (`sum(quantities, ZERO)`)."""
