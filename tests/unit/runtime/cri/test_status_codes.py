"""gRPC status -> errors by what the caller can do."""

from __future__ import annotations

import time

import grpc
import pytest

from glasslet.runtime.cri.status_codes import translate
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import (
    ExecTimeout,
    ImagePullFailed,
    NameReserved,
    NotInRuntime,
    RuntimeCallError,
    RuntimeRejected,
    RuntimeTimeout,
    RuntimeUnavailable,
)

ID = "2ae632acb89ce2e47145f229c63064c505cb90742129fd0501f82f9b1728f388"
CODES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]
SPECIAL = {
    grpc.StatusCode.UNAVAILABLE: RuntimeUnavailable,
    grpc.StatusCode.CANCELLED: RuntimeUnavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: RuntimeTimeout,
    grpc.StatusCode.NOT_FOUND: NotInRuntime,
}


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_one_error(code: grpc.StatusCode) -> None:
    error = translate(Verb.STATUS, code, "because")

    assert type(error) is SPECIAL.get(code, RuntimeRejected)
    assert (error.verb, error.message, error.code) == ("Status", "because", code.name)


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("code", CODES)
def test_every_verb_and_code_give_a_runtime_error(verb: Verb, code: grpc.StatusCode) -> None:
    assert isinstance(translate(verb, code, ""), RuntimeCallError)


def test_a_deadline_of_exec_is_the_commands() -> None:
    """behaviours.md §30: "ExecSync ... DeadlineExceeded = time-out of the command"."""
    assert type(translate(Verb.EXEC_SYNC, grpc.StatusCode.DEADLINE_EXCEEDED, "")) is ExecTimeout


@pytest.mark.parametrize("verb", [Verb.RUN_POD_SANDBOX, Verb.CREATE_CONTAINER])
@pytest.mark.parametrize(
    ("message", "owner"),
    [
        (f'failed to reserve sandbox name "p_d_u_0": name "p_d_u_0" is reserved for "{ID}"', ID),
        (f'failed to reserve container name "c_p_d_u_0": name "c_p_d_u_0" is reserved for "{ID}"', ID),
        (f'the container name "k8s_c_p" is already in use by {ID}. You have to remove that container', ID),
        ("error reserving ctr name k8s_c_p for id x: name is reserved", ""),
    ],
)
def test_a_taken_name_tells_who_holds_it(verb: Verb, message: str, owner: str) -> None:
    error = translate(verb, grpc.StatusCode.UNKNOWN, message)

    assert isinstance(error, NameReserved)
    assert error.owner == owner


@pytest.mark.parametrize("message", ['volume "x" is reserved', "this is reserved", "name x is reserved"])
def test_other_words_about_reservations_are_no_taken_name(message: str) -> None:
    assert type(translate(Verb.CREATE_CONTAINER, grpc.StatusCode.UNKNOWN, message)) is RuntimeRejected


@pytest.mark.parametrize(
    ("piece", "count"),
    [
        ('name "', 170_000),
        ('name "a" ', 110_000),
        ('name "x" is ', 80_000),
        ('" is ', 200_000),
        ('" is reserved', 80_000),
    ],
)
def test_long_answers_of_a_runtime_are_read_in_a_moment(piece: str, count: int) -> None:
    # They hold texts of images and hooks. 180 KB took 22 s of the event loop.
    began = time.process_time()
    translate(Verb.CREATE_CONTAINER, grpc.StatusCode.UNKNOWN, piece * count)
    assert time.process_time() - began < 1.0


def test_already_there_is_a_taken_name_without_a_text() -> None:
    error = translate(Verb.CREATE_CONTAINER, grpc.StatusCode.ALREADY_EXISTS, "exists")

    assert isinstance(error, NameReserved)
    assert error.owner == ""


def test_other_verbs_are_not_read_for_names() -> None:
    error = translate(Verb.START_CONTAINER, grpc.StatusCode.UNKNOWN, f'name "x" is reserved for "{ID}"')

    assert type(error) is RuntimeRejected


@pytest.mark.parametrize("reason", ["RegistryUnavailable", "SignatureValidationFailed"])
@pytest.mark.parametrize("code", [grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAVAILABLE])
def test_a_failed_pull_carries_the_reason_that_begins_its_text(reason: str, code: grpc.StatusCode) -> None:
    error = translate(Verb.PULL_IMAGE, code, f"{reason}: in detail")

    assert isinstance(error, ImagePullFailed)
    assert (error.reason, error.message) == (reason, f"{reason}: in detail")


def test_a_reason_in_the_middle_of_a_text_is_none() -> None:
    error = translate(Verb.PULL_IMAGE, grpc.StatusCode.UNKNOWN, "rpc error: RegistryUnavailable")

    assert isinstance(error, ImagePullFailed)
    assert error.reason == ""


def test_an_image_that_no_registry_has_is_a_failed_pull() -> None:
    assert type(translate(Verb.PULL_IMAGE, grpc.StatusCode.NOT_FOUND, "no such tag")) is ImagePullFailed


def test_a_runtime_that_goes_away_during_a_pull_says_nothing_of_the_image() -> None:
    assert type(translate(Verb.PULL_IMAGE, grpc.StatusCode.UNAVAILABLE, "Socket closed")) is RuntimeUnavailable
