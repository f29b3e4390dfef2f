"""Reasons and words of failed pulls."""

from __future__ import annotations

import pytest

from glasslet.runtime.errors import ImagePullFailed, RuntimeCallError, RuntimeUnavailable
from glasslet.runtime.images.outcomes import error_words, pull_problem, size_bucket


def failed(message: str, *, reason: str = "", code: str = "") -> ImagePullFailed:
    return ImagePullFailed(message, reason=reason, code=code)


@pytest.mark.parametrize(
    ("errors", "reason", "message"),
    [
        pytest.param(
            (failed("not found", code="NOT_FOUND"),),
            "ErrImagePull",
            "rpc error: code = NotFound desc = not found",
            id="the gRPC code stands in front",
        ),
        pytest.param((failed("broken", code="UNKNOWN"),), "ErrImagePull", "broken", id="the code Unknown says nothing"),
        pytest.param((failed("pull QPS exceeded"),), "ErrImagePull", "pull QPS exceeded", id="an error of our own"),
        pytest.param(
            (failed("RegistryUnavailable: connection refused", reason="RegistryUnavailable"),),
            "RegistryUnavailable",
            "image pull failed for a:1 because the registry is unavailable: connection refused",
            id="registry unavailable",
        ),
        pytest.param(
            (failed("connection refused", reason="RegistryUnavailable"),),
            "RegistryUnavailable",
            "image pull failed for a:1 because the registry is unavailable: connection refused",
            id="a reason that the text does not repeat",
        ),
        pytest.param(
            (failed("SignatureValidationFailed", reason="SignatureValidationFailed"),),
            "SignatureValidationFailed",
            "image pull failed for a:1 because the signature validation failed",
            id="signature",
        ),
        pytest.param(
            (failed("denied"), failed("denied too")),
            "ErrImagePull",
            "[denied, denied too]",
            id="every credential's error is named",
        ),
        pytest.param((failed("denied"), failed("denied")), "ErrImagePull", "denied", id="equal errors are named once"),
    ],
)
def test_errors_become_a_reason_and_a_message(errors: tuple[RuntimeCallError, ...], reason: str, message: str) -> None:
    # behaviours.md §8: "Errors become waiting reasons ErrImagePull, RegistryUnavailable, SignatureValidationFailed,
    # ..."
    assert pull_problem("a:1", errors)[:2] == (reason, message)


def test_the_words_for_events_are_the_runtimes_own() -> None:
    error = failed("RegistryUnavailable: refused", reason="RegistryUnavailable")
    assert pull_problem("a", (error,))[2] == "RegistryUnavailable: refused"


def test_cancelled_is_written_as_go_writes_it() -> None:
    words = error_words((RuntimeUnavailable("PullImage", "gone", code="CANCELLED"),))
    assert words == "rpc error: code = Canceled desc = gone"


@pytest.mark.parametrize(
    ("size", "label"),
    [
        (0, "N/A"),
        (1, "0-10MB"),
        (10 << 20, "0-10MB"),
        ((10 << 20) + 1, "10MB-100MB"),
        (1 << 30, "500MB-1GB"),
        (3 << 30, "1GB-5GB"),
        (200 << 30, "GT100GB"),
    ],
)
def test_sizes_fall_into_buckets_whose_lower_bound_is_exclusive(size: int, label: str) -> None:
    assert size_bucket(size) == label
