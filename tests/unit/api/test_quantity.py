"""Amounts are exact and print as Kubernetes prints them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glasslet.api.quantity import ZERO, Format, Quantity

CANONICAL = json.loads((Path(__file__).parents[2] / "data/manifests/canonical_quantities.json").read_text())
PARSED = json.loads((Path(__file__).parents[2] / "data/manifests/quantities.json").read_text())
"""Text -> billionths and format, null where refused: what ParseQuantity of k8s.io/apimachinery v0.34 gives."""
SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "e-3", "E6"]
numbers = st.decimals(min_value=-(10**12), max_value=10**12, places=3, allow_nan=False).map(lambda n: f"{n:f}")
texts = st.builds(lambda number, suffix: f"{number}{suffix}", numbers, st.sampled_from(SUFFIXES))
quantities = texts.map(Quantity.parse)


@pytest.mark.parametrize(("text", "printed"), CANONICAL.items())
def test_prints_the_canonical_form_of_upstream(text: str, printed: str) -> None:
    assert str(Quantity.parse(text)) == printed


@given(quantities)
def test_printed_text_reads_back_as_the_same_amount(quantity: Quantity) -> None:
    assert Quantity.parse(str(quantity)) == quantity


@given(quantities)
def test_printing_is_stable(quantity: Quantity) -> None:
    assert str(Quantity.parse(str(quantity))) == str(quantity)


@given(quantities, quantities)
def test_sum_and_difference_are_exact(one: Quantity, other: Quantity) -> None:
    assert (one + other) - other == one


@given(quantities, quantities)
def test_order_is_that_of_the_amounts(one: Quantity, other: Quantity) -> None:
    assert (one < other) == (one.nano_value() < other.nano_value())


@given(quantities, st.integers(min_value=0, max_value=50))
def test_multiplication_is_repeated_addition(quantity: Quantity, times: int) -> None:
    assert quantity * times == sum([quantity] * times, ZERO)


@given(quantities)
def test_whole_units_are_rounded_away_from_zero(quantity: Quantity) -> None:
    assume(abs(quantity.nano_value()) < 2**63 * 10**9)
    added = abs(quantity.value()) * 10**9 - abs(quantity.nano_value())
    assert 0 <= added < 10**9


@pytest.mark.parametrize(("text", "wanted"), PARSED.items())
def test_reads_what_upstream_reads(text: str, wanted: list[str] | None) -> None:
    if wanted is None:
        with pytest.raises(ValueError, match="is not a quantity"):
            Quantity.parse(text)
        return
    quantity = Quantity.parse(text)
    assert [str(quantity.nano_value()), quantity.format] == wanted


@pytest.mark.parametrize(
    "text", ["", "x", "1K", "1ki", "--1", "1e", "1e5m", "1..2", "1 k", "٣", "nan", "1e" + "9" * 20]
)
def test_what_is_no_quantity_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity") as error:
        Quantity.parse(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize("text", ["1e63", "1E100", "123456789e50"])
def test_an_amount_beyond_int64_is_exact_and_its_whole_units_saturate(text: str) -> None:
    quantity = Quantity.parse(text)
    assert quantity.nano_value() == int(Decimal(text).scaleb(9))
    assert (quantity.value(), quantity.milli_value()) == (2**63 - 1, 2**63 - 1)
    assert (-quantity).value() == -(2**63)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1e99999999", "1e100"),
        ("1e9223372036854775807", "1e100"),
        ("9" * 1_000_000, "1e100"),
        ("-" + "9" * 1_000_000, "-1e100"),
        ("1e-99999999", "1n"),
        (f"0.{'0' * 1_000_000}1", "1n"),
        (f"1.{'3' * 1_000_000}Ki", "1365333333334n"),
        (f"{'1' * 1_000_000}e-999999", "1111111112e-9"),
        (f"1e{'0' * 1_000_000}3", "1e3"),
    ],
    ids=lambda text: text[:20],
)
def test_a_hostile_text_saturates(text: str, amount: str) -> None:
    assert Quantity.parse(text) == Quantity.parse(amount)


def test_an_error_shows_a_long_text_cut() -> None:
    with pytest.raises(ValueError, match=r"9{100}'\.\.\. \(1000001 characters\) is not a quantity") as error:
        Quantity.parse("9" * 1_000_000 + "x")
    assert len(str(error.value)) < 400


def test_the_amount_of_a_large_quantity_is_exact() -> None:
    assert Quantity.parse("123456789012345678901234567890n").amount == Decimal("123456789012345678901.234567890")


def test_equal_amounts_are_equal_however_written() -> None:
    assert Quantity.parse("1") == Quantity.parse("1000m") == Quantity.parse("1e0")
    assert hash(Quantity.parse("1")) == hash(Quantity.parse("1000m"))


def test_zero_takes_the_format_of_what_is_added() -> None:
    assert (ZERO + Quantity.parse("2Ki")).format is Format.BINARY_SI


def test_sub_milli_amounts_are_rounded_up_to_thousandths() -> None:
    assert str(Quantity.parse("1500u").rounded_up_to_milli()) == "2m"
    assert str(Quantity.parse("-1500u").rounded_up_to_milli()) == "-2m"


def test_amount_is_the_exact_decimal() -> None:
    assert Quantity.parse("1.5").amount == Decimal("1.5")
    assert Quantity(Decimal("0.25")) == Quantity.parse("250m")
