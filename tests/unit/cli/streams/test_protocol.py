"""How a session in a container ends."""

from __future__ import annotations

import pytest

from glasslet.cli.failure import Failure
from glasslet.cli.streams.protocol import exit_code, size_message


def test_success_is_zero() -> None:
    assert exit_code(b'{"metadata":{},"status":"Success"}') == 0


def test_the_commands_exit_code_is_found_in_the_causes() -> None:
    status = (
        b'{"status":"Failure","reason":"NonZeroExitCode","message":"command terminated with non-zero exit code",'
        b'"details":{"causes":[{"reason":"ExitCode","message":"42"}]}}'
    )
    assert exit_code(status) == 42


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (b'{"status":"Failure","message":"no such container","details":{}}', "no such container"),
        (b'{"status":"Failure","reason":"InternalError"}', "InternalError"),
        (b"exec failed: plain text", "plain text"),
        (b'{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"x"}]}}', "did not run"),
        (b"\xff\xfe", "."),
    ],
)
def test_a_command_that_did_not_run_is_a_failure_in_its_own_words(status: bytes, words: str) -> None:
    with pytest.raises(Failure, match=words):
        exit_code(status)


def test_a_size_has_the_form_of_the_protocol() -> None:
    assert size_message(120, 40) == b'{"Width":120,"Height":40}'
