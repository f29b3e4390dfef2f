"""Field errors print as Kubernetes prints them."""

from __future__ import annotations

import pytest

from glasslet.api.field_errors import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
)
from glasslet.api.quantity import Quantity

NAME = FieldPath("spec").child("containers").at(0).child("name")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (required(NAME), "spec.containers[0].name: Required value"),
        (required(NAME, "why"), "spec.containers[0].name: Required value: why"),
        (invalid(NAME, 'a"b', "why"), 'spec.containers[0].name: Invalid value: "a\\"b": why'),
        (invalid(NAME, 5, "why"), "spec.containers[0].name: Invalid value: 5: why"),
        (invalid(NAME, True, "why"), "spec.containers[0].name: Invalid value: true: why"),
        (invalid(NAME, Quantity.parse("1.5"), "why"), 'spec.containers[0].name: Invalid value: "1500m": why'),
        (
            not_supported(NAME, "x", ("a", "b")),
            'spec.containers[0].name: Unsupported value: "x": supported values: "a", "b"',
        ),
        (duplicate(NAME, "x"), 'spec.containers[0].name: Duplicate value: "x"'),
        (forbidden(NAME, "why"), "spec.containers[0].name: Forbidden: why"),
        (too_long(NAME, 63), "spec.containers[0].name: Too long: may not be more than 63 bytes"),
        (not_found(NAME, "x"), 'spec.containers[0].name: Not found: "x"'),
    ],
)
def test_prints_like_upstream(error: FieldError, text: str) -> None:
    assert str(error) == text


def test_map_keys_stand_in_brackets() -> None:
    assert FieldPath("metadata").child("annotations").key("a/b") == "metadata.annotations[a/b]"


def test_a_huge_value_is_cut() -> None:
    assert len(str(invalid(NAME, "x" * 1_000_000, "why"))) < 1000


def test_a_huge_detail_and_a_huge_path_are_cut() -> None:
    assert len(str(invalid(NAME, 1, "x" * 1_000_000))) < 3000
    assert len(str(required(NAME.key("x" * 1_000_000)))) < 3000
