"""Whatever an object holds, decoding gives the object or one bounded DecodeError that names the field."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasslet.api.codec import DecodeError, convert, decode, encode, to_plain
from glasslet.api.configdata import ConfigMap, Secret
from glasslet.api.node import Node
from glasslet.api.persistent_volume import PersistentVolume
from glasslet.api.pod import Pod
from glasslet.api.pod_status import PodStatus
from glasslet.api.times import rfc3339
from tests.builders.hostile_pods import changed_pods, pods_with_amount

T = TypeVar("T")
LONGEST_ERROR = 1200
BYTES = [b"null", b"1e999", b"9" * 5000, b"[" * 3000, b"{", b'"', b"-", b"\\ud800", b"NaN", b"\xff", b"\x00", b"true"]


@st.composite
def changed_bytes(draw: st.DrawFn) -> bytes:
    data = bytearray(json.dumps(draw(changed_pods())).encode())
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        data[start : start + draw(st.integers(0, 40))] = draw(st.sampled_from(BYTES))
    return bytes(data)


def attempt(read: Callable[[], T]) -> T | None:
    """The object; None after an error that is short enough to show."""
    try:
        return read()
    except DecodeError as error:
        if len(str(error)) > LONGEST_ERROR:
            pytest.fail(f"an error of {len(str(error))} characters: {str(error)[:200]}")
        return None


@settings(max_examples=300, deadline=None)
@given(changed_pods())
def test_plain_data_becomes_a_pod_that_can_be_written_or_one_error(value: Any) -> None:
    pod = attempt(lambda: convert(value, Pod))
    if pod is not None:
        assert decode(encode(pod), Pod) == convert(to_plain(pod), Pod)


@settings(max_examples=300, deadline=None)
@given(changed_bytes(), st.sampled_from([Pod, Node, ConfigMap, Secret, PersistentVolume]))
def test_bytes_become_an_object_that_can_be_written_or_one_error(data: bytes, kind: type[Any]) -> None:
    made = attempt(lambda: decode(data, kind))
    if made is not None:
        assert encode(made)


@pytest.mark.parametrize("amount", ['"1e63"', "1e63", "1e999", '"1e999999999"', f'"{"9" * 100_000}"', "1" + "0" * 40])
def test_a_huge_size_limit_is_a_size_limit(amount: str) -> None:
    pod = decode(f'{{"spec":{{"volumes":[{{"name":"a","emptyDir":{{"sizeLimit":{amount}}}}}]}}}}', Pod)
    limit = pod.spec.volumes[0].empty_dir.size_limit  # type: ignore[union-attr]
    assert limit is not None
    assert limit.value() == 2**63 - 1


@pytest.mark.parametrize("amount", ["1e63", "9" * 5000, "-1e999999999"])
def test_a_huge_quantity_in_any_field_leaves_the_pod_readable(amount: str) -> None:
    pods = pods_with_amount(amount)
    assert len(pods) >= 10
    assert all(decode(json.dumps(pod), Pod).metadata.name for pod in pods)


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ({"spec": {"containers": [{"args": ["\ud800"]}]}}, "spec.containers[0].args[0]", "half of a surrogate pair"),
        ({"spec": {"overhead": {"cpu": "9" * 900 + "x"}}}, "spec.overhead[...]", "(901 characters) is not a quantity"),
        ({"metadata": {"deletionTimestamp": "soon"}}, "metadata.deletionTimestamp", "want a time in RFC 3339"),
    ],
)  # fmt: skip
def test_an_error_names_the_field_and_what_is_allowed(value: Any, path: str, message: str) -> None:
    with pytest.raises(DecodeError) as error:
        convert(value, Pod)
    assert error.value.path == path
    assert message in error.value.message


def test_plain_data_nested_too_deeply_is_one_error() -> None:
    value: Any = {}
    for _ in range(20_000):
        value = {"a": value}
    with pytest.raises(DecodeError, match="nested too deeply"):
        convert({"spec": {"fc": value}}, PersistentVolume)


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_a_time_at_the_edge_of_the_calendar_can_be_written(time: str) -> None:
    status = decode(f'{{"startTime":"{time}"}}', PodStatus)
    assert status.start_time is not None
    assert encode(status)
    assert rfc3339(status.start_time)[:4] in ("9999", "0001")
