"""Quantity: an exact amount with Kubernetes' suffixes (apimachinery resource.Quantity)."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from functools import total_ordering

_TEXT = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E))?")
_FACTOR = {
    None: Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(10**3),
    "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}  # fmt: skip


@total_ordering
class Quantity:
    """An exact amount. Equal amounts are equal, however they were written (`1`, `1000m`)."""

    __slots__ = ("amount", "suffix")

    def __init__(self, amount: Decimal, suffix: str | None = None) -> None:
        self.amount = amount
        self.suffix = suffix

    @classmethod
    def parse(cls, text: str | int | float) -> Quantity:
        """Reads `500m`, `1.5Gi`, `1e3`, 2. Raises ValueError naming the text."""
        match = _TEXT.fullmatch(str(text))
        if match is None:
            raise ValueError(
                f"{text!r} is no quantity: want a number with one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, or an exponent"
            )
        number, exponent, suffix = match.groups()
        return cls(Decimal(number + (exponent or "")) * _FACTOR[suffix], suffix)

    def value(self) -> int:
        """Whole units, rounded up."""
        return int(self.amount.to_integral_value(rounding=ROUND_CEILING))

    def milli_value(self) -> int:
        """Thousandths, rounded up."""
        return int((self.amount * 1000).to_integral_value(rounding=ROUND_CEILING))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.amount == other.amount

    def __lt__(self, other: Quantity) -> bool:
        return self.amount < other.amount

    def __hash__(self) -> int:
        return hash(self.amount)
