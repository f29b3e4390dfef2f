"""A quantity as the hashed text of a static pod has it: Go's three ways to hold one, by how it was written. Pure.

Small amounts are a number and a power of ten; they keep the text where it is canonical. Others are a big decimal.
Amounts of resources are rounded up to thousandths when defaults are set.
"""

from __future__ import annotations

import re
from typing import Any

_PARTS = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,9})|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?)")
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_TWOS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_INT64 = range(-(2**63), 2**63)
_NANO, _MILLI = 9, 3
_LONGEST = 100
"""Characters of a text, and powers of ten, that are still computed with."""
_DECIMAL, _BINARY, _EXPONENT = "DecimalSI", "BinarySI", "DecimalExponent"


class NotKnown(Exception):
    """A value whose text in Go is not known here."""


def quantity_text(written: Any, *, to_milli: bool) -> str:
    """The text of a quantity; "" is one that was never set. Raises NotKnown."""
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        raise NotKnown("a quantity")
    text = str(written).strip()
    if isinstance(written, float):
        text = text.removesuffix(".0")
    if text == "":
        return _small(0, 0, "", "")
    match = _PARTS.fullmatch(text)
    if match is None or len(text) > _LONGEST or (isinstance(written, float) and match[4]):
        raise NotKnown("a quantity")
    sign, whole, fraction, exponent, suffix = match.groups(default="")
    if text == "0":
        return _small(0, 0, text, _DECIMAL)
    whole = whole or "0"
    form = _EXPONENT if exponent else _BINARY if suffix in _TWOS else _DECIMAL
    if form == _BINARY:
        small = not fraction and 15 - len(whole) - int(_TWOS[suffix] * 3 / 10) - 1 >= 0
        factor, scale = 2 ** _TWOS[suffix], 0
    else:
        small = 18 - len(whole) - len(fraction) >= 0
        factor, scale = 1, int(exponent) if exponent else _POWERS[suffix]
    digits, scale = whole + fraction, scale - len(fraction)
    amount = int(digits) * factor * (-1 if sign == "-" else 1)
    if abs(scale) > _LONGEST:
        raise NotKnown("a power of ten")
    if not small or scale < -_NANO or amount not in _INT64:
        return _big(amount, scale, form, _MILLI if to_milli else _NANO)
    if form == _BINARY:
        canonical = _TWOS[suffix] % 10 == 0 and int(digits) & 7 != 0
    else:
        canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    if to_milli and scale < -_MILLI:
        return _small(_rounded_up(amount, -_MILLI - scale), -_MILLI, "", form)
    return _small(amount, scale, text if canonical else "", form)


def _small(amount: int, scale: int, text: str, form: str) -> str:
    number = f"i:(resource.int64Amount){{value:(int64){amount} scale:(resource.Scale){scale}}}"
    return (
        f"{{{number} d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){text} Format:(resource.Format){form}}}"
    )


def _big(amount: int, scale: int, form: str, places: int) -> str:
    """An amount of `amount * 10^scale`, rounded up to this many decimal places."""
    nano = amount * 10 ** (scale + _NANO) if scale >= -_NANO else _rounded_up(amount, -_NANO - scale)
    if form == _BINARY and abs(nano) < 10**_NANO:
        form = _DECIMAL
    if form == _BINARY and abs(nano) > (2**63 - 1) * 10**_NANO:
        raise NotKnown("an amount above the largest one")
    unscaled = _rounded_up(nano, _NANO - places)
    if not unscaled:
        raise NotKnown("nothing, as a big number")
    sign, words = "true" if unscaled < 0 else "false", _words(abs(unscaled))
    big = f"{{unscaled:(big.Int){{neg:(bool){sign} abs:(big.nat)[{words}]}} scale:(inf.Scale){places}}}"
    number = "i:(resource.int64Amount){value:(int64)0 scale:(resource.Scale)0}"
    return f"{{{number} d:(resource.infDecAmount){{Dec:(*inf.Dec){big}}} s:(string) Format:(resource.Format){form}}}"


def _rounded_up(amount: int, places: int) -> int:
    """Without its last decimal places, away from zero."""
    divisor = int(10**places)
    return -(-amount // divisor) if amount >= 0 else amount // divisor


def _words(amount: int) -> str:
    """The 64 bit words of a number, the lowest first."""
    words = []
    while amount:
        amount, word = divmod(amount, 2**64)
        words.append(str(word))
    return " ".join(words)
