"""Formats of names: only what the verdicts of whole pods do not show."""

from __future__ import annotations

import time

import pytest

from glasslet.api import formats


@pytest.mark.parametrize("text", ["10.0.0.1", "010.001.0.1", "::1", "2001:db8::ffff", "::ffff:1.2.3.4"])
def test_is_an_address(text: str) -> None:
    assert formats.ip_problems(text) == []


@pytest.mark.parametrize("text", ["", "10.0.0", "10.0.0.256", "10.0.0.0.1", "fe80::1%eth0", "a", "1..2.3", "٣.0.0.1"])
def test_is_no_address(text: str) -> None:
    assert formats.ip_problems(text) == ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]


@pytest.mark.parametrize(
    "rule",
    [
        formats.dns_label_problems,
        formats.dns_subdomain_problems,
        formats.qualified_name_problems,
        formats.label_value_problems,
        formats.env_name_problems,
        formats.config_key_problems,
        formats.port_name_problems,
    ],
)
def test_a_megabyte_of_text_is_refused_at_once(rule: object) -> None:
    start = time.process_time()
    assert rule("a-" * 500_000 + "!")  # type: ignore[operator]
    assert time.process_time() - start < 1


def test_a_name_with_a_newline_at_its_end_is_refused() -> None:
    assert formats.dns_label_problems("web\n")


def test_a_generated_name_may_end_with_a_dash() -> None:
    assert formats.name_prefix_problems("web-") == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("-0", 0), ("+7", 7), ("007", 7), ("", None), ("-", None),
        ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None), ("-9223372036854775809", None), ("1_0", None), (" 1", None),
        ("1.0", None), ("\u0661", None), ("\u00b2", None), ("9" * 100_000, None), ("0" * 100_000 + "5", 5),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_a_number_of_64_bits_is_read_as_go_reads_it(text: str, number: int | None) -> None:
    assert formats.int64(text) == number
