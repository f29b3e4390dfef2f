"""JSON and plain data to typed objects and back."""

from __future__ import annotations

from datetime import datetime

import pytest

from glasslet.api.codec import DecodeError, convert, decode, encode, encode_sorted, to_plain
from glasslet.api.configdata import Secret
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.pod_status import PodStatus


def pod(text: str) -> Pod:
    return decode(text, Pod)


@pytest.mark.parametrize(
    "text",
    [
        '{"metadata": {"labels": null}}',
        '{"spec": {"containers": null}}',
        '{"spec": {"dnsPolicy": null, "hostNetwork": null}}',
        '{"metadata": null, "spec": null}',
        '{"spec": {"securityContext": null}}',
    ],
)
def test_a_null_field_is_an_absent_field(text: str) -> None:
    assert pod(text) == Pod()


def test_a_null_in_a_list_is_the_zero_value_of_its_element() -> None:
    made = pod('{"spec": {"containers": [null, {"command": [null, "x"]}]}}')
    assert made.spec.containers[0].name == ""
    assert made.spec.containers[1].command == ("", "x")


def test_a_null_in_a_map_keeps_its_key() -> None:
    made = pod('{"metadata": {"annotations": {"a": null}}, "spec": {"overhead": {"cpu": null}}}')
    assert made.metadata.annotations == {"a": ""}
    assert str(made.spec.overhead["cpu"]) == "0"


def test_unknown_fields_are_ignored() -> None:
    assert pod('{"spec": {"futureField": {"a": [1]}}}') == Pod()


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ('{"spec": {"containers": [{"name": 1}]}}', "spec.containers[0].name", "want a string, got a whole number"),
        ('{"spec": {"containers": {}}}', "spec.containers", "want a list, got an object"),
        ('{"spec": {"hostNetwork": "yes"}}', "spec.hostNetwork", "want true or false, got a string"),
        ('{"spec": {"priority": 1.5}}', "spec.priority", "want a whole number, got a number"),
        ("[]", "", "want an object, got a list"),
        ('{"spec": ', "", "this is not JSON"),
        ("", "", "this is not JSON"),
        (f'{{"spec": {"[" * 100_000}', "spec", "want an object, got a list"),
    ],
)
def test_a_wrong_type_is_one_clear_error_with_its_path(text: str, path: str, message: str) -> None:
    with pytest.raises(DecodeError) as error:
        pod(text)
    assert error.value.path == path
    assert message in error.value.message


def test_errors_hold_no_values_of_environment_variables() -> None:
    with pytest.raises(DecodeError) as error:
        pod('{"spec": {"containers": [{"env": [{"name": "PIN", "value": 12345}]}]}}')
    assert "12345" not in str(error.value)


def test_a_bad_quantity_is_named_with_what_is_allowed() -> None:
    with pytest.raises(DecodeError, match=r"limits.*'1x' is not a quantity: want a number"):
        pod('{"spec": {"resources": {"limits": {"cpu": "1x"}}}}')


def test_a_truth_value_is_no_quantity() -> None:
    with pytest.raises(DecodeError, match="want a quantity"):
        convert({"overhead": {"cpu": True}}, PodSpec)


def test_bytes_are_base64() -> None:
    assert decode('{"data": {"a": "aGk="}}', Secret).data == {"a": b"hi"}
    with pytest.raises(DecodeError):
        decode('{"data": {"a": "%"}}', Secret)


def test_times_are_written_in_whole_seconds() -> None:
    status = PodStatus(start_time=datetime.fromisoformat("2026-01-02T03:04:05.678+02:00"))
    assert encode(Pod(status=status)) == b'{"status":{"startTime":"2026-01-02T01:04:05Z"}}'


def test_plain_form_holds_only_what_json_knows() -> None:
    made = pod('{"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "0.5"}}}]}}')
    assert to_plain(made) == {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "500m"}}}]}}


def test_sorted_form_does_not_depend_on_the_order_of_keys() -> None:
    one = pod('{"metadata": {"labels": {"a": "1", "b": "2"}}}')
    other = pod('{"metadata": {"labels": {"b": "2", "a": "1"}}}')
    assert encode_sorted(one) == encode_sorted(other)


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05", "2026-01-02 03:04:05"])
def test_a_time_without_a_zone_is_refused_since_it_could_not_be_written_again(text: str) -> None:
    with pytest.raises(DecodeError, match="want a time with its zone") as caught:
        decode(encode({"metadata": {"name": "web", "creationTimestamp": text}}), Pod)
    assert caught.value.path == "metadata.creationTimestamp"
