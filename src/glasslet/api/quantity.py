"""Quantity: an exact amount with Kubernetes' suffixes (apimachinery resource.Quantity).

Amounts are whole numbers of billionths: nothing smaller exists on the wire (what is smaller is rounded up, away from
zero), so every operation here is plain integer arithmetic. A quantity remembers in which family of suffixes it was
written and prints in that family's canonical form: no fraction, the largest suffix that loses nothing.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache, total_ordering
from typing import Any

_BILLION = 10**9
_TEXT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+)|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?)")
_DECIMAL_POWER = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL_POWER.items()}
_BINARY_SUFFIX = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_BINARY_FACTOR = {suffix: 1024**power for power, suffix in enumerate(_BINARY_SUFFIX) if suffix}
_MAX_BINARY = (2**63 - 1) * _BILLION
"""Upstream caps what is written with a binary suffix at the largest int64."""
_MAX_EXPONENT = 60
_MAX_TEXT = 100


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
        return _parse(text if isinstance(text, str) else str(text))

    @property
    def amount(self) -> Decimal:
        """The amount in whole units, exact."""
        return Decimal(self._nano).scaleb(-9) if abs(self._nano) < 10**27 else Decimal(self._nano) / _BILLION

    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _away_from_zero(self._nano, _BILLION)

    def milli_value(self) -> int:
        """Thousandths, rounded away from zero."""
        return _away_from_zero(self._nano, 10**6)

    def nano_value(self) -> int:
        """Billionths, exact."""
        return self._nano

    def rounded_up_to_milli(self) -> Quantity:
        """What the API keeps of a resource amount: nothing finer than a thousandth."""
        return self if self._nano % 10**6 == 0 else Quantity.of_nano(self.milli_value() * 10**6, self.format)

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


@lru_cache(maxsize=1024)
def _parse(text: str) -> Quantity:
    match = _TEXT.fullmatch(text.strip()) if len(text) <= _MAX_TEXT else None
    if match is None or not (match[2] or match[3]):
        raise ValueError(
            f"{text[:_MAX_TEXT]!r} is not a quantity: want a number with an optional suffix"
            " n u m k M G T P E Ki Mi Gi Ti Pi Ei or exponent (500m, 1.5Gi, 2, 1e3)"
        )
    sign, whole, fraction, exponent, suffix = match.groups()
    digits, places = int(whole + (fraction or "")), len(fraction or "")
    form = Format.DECIMAL_SI
    factor = 1
    if exponent is not None:
        form, power = Format.DECIMAL_EXPONENT, int(exponent)
        if power > _MAX_EXPONENT:
            raise ValueError(f"{text!r} is not a quantity: the exponent is larger than {_MAX_EXPONENT}")
        power = max(power, -10 * _MAX_TEXT)
    elif suffix in _BINARY_FACTOR:
        form, power, factor = Format.BINARY_SI, 0, _BINARY_FACTOR[suffix]
    else:
        power = _DECIMAL_POWER[suffix or ""]
    shift = 9 + power - places
    nano = digits * factor * 10**shift if shift >= 0 else _away_from_zero(digits * factor, 10**-shift)
    if form is Format.BINARY_SI:
        nano = min(nano, _MAX_BINARY)
        if 0 < nano < _BILLION:
            form = Format.DECIMAL_SI
    return Quantity.of_nano(-nano if sign == "-" else nano, form)


ZERO = Quantity(0)
"""No amount; the start of sums (`sum(quantities, ZERO)`)."""
