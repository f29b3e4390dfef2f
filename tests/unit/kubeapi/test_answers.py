"""HTTP answers become errors by what the caller can do."""

from __future__ import annotations

import json

import pytest

from glasslet.kubeapi import errors
from glasslet.kubeapi.answers import error_for


def status(reason: str = "", message: str = "") -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message}).encode()


@pytest.mark.parametrize("code", range(300, 600))
def test_every_code_becomes_an_api_error(code: int) -> None:
    assert isinstance(error_for("GET /x", code, b""), errors.APIError)


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (401, "", errors.Unauthorized),
        (403, "", errors.Forbidden),
        (404, "", errors.NotFound),
        (409, "", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "", errors.Gone),
        (422, "", errors.Invalid),
        (429, "", errors.Throttled),
        (500, "", errors.Unavailable),
        (503, "", errors.Unavailable),
    ],
)
def test_code_and_reason_choose_the_error(code: int, reason: str, kind: type[errors.APIError]) -> None:
    assert type(error_for("GET /x", code, status(reason))) is kind


def test_message_is_the_servers() -> None:
    assert error_for("GET /x", 404, status(message='pods "a" not found')).message == 'pods "a" not found'


def test_page_of_a_proxy_is_trimmed() -> None:
    assert len(error_for("GET /x", 502, b"<html>" * 1000).message) == 300


def test_retry_after_comes_from_the_header() -> None:
    error = error_for("GET /x", 429, b"", "7")
    assert isinstance(error, errors.Throttled)
    assert error.retry_after == 7.0


@pytest.mark.parametrize("header", ["inf", "1e300", "31536000"])
def test_server_cannot_silence_the_node_with_its_retry_after(header: str) -> None:
    error = error_for("GET /x", 429, b"", header)
    assert isinstance(error, errors.Throttled)
    assert error.retry_after == 300.0


def test_negative_pause_of_a_status_is_none() -> None:
    error = error_for("GET /x", 429, b'{"details": {"retryAfterSeconds": -5}}')
    assert isinstance(error, errors.Throttled)
    assert error.retry_after == 1.0
