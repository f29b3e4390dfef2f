"""Amounts are exact and print as Kubernetes prints them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasslet.api.quantity import ZERO, Format, Quantity

CANONICAL = json.loads((Path(__file__).parents[2] / "data/manifests/canonical_quantities.json").read_text())
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
    added = abs(quantity.value()) * 10**9 - abs(quantity.nano_value())
    assert 0 <= added < 10**9


@pytest.mark.parametrize(
    "text", ["", "x", "1K", "1ki", "--1", "1e", "1e5m", "1..2", "-", ".", "1 k", "٣", "nan", "1e61"]
)
def test_what_is_no_quantity_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity") as error:
        Quantity.parse(text)
    assert repr(text) in str(error.value)


def test_a_hostile_exponent_costs_nothing() -> None:
    assert Quantity.parse("1e-99999999") == Quantity.parse("1n")
    with pytest.raises(ValueError, match="exponent"):
        Quantity.parse("1e99999999")


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
