"""Outcomes of making an image present, and their messages. Pure."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from glasslet.runtime.errors import ImagePullFailed, RuntimeCallError


class ImageReason(StrEnum):
    """Waiting reasons of a container that lacks its image."""

    PULL_FAILED = "ErrImagePull"
    BACK_OFF = "ImagePullBackOff"
    NEVER_PULL = "ErrImageNeverPull"
    INVALID_NAME = "InvalidImageName"
    INSPECT_FAILED = "ImageInspectError"
    REGISTRY_UNAVAILABLE = "RegistryUnavailable"
    SIGNATURE_INVALID = "SignatureValidationFailed"


_WHY = {
    ImageReason.REGISTRY_UNAVAILABLE: "the registry is unavailable",
    ImageReason.SIGNATURE_INVALID: "the signature validation failed",
}


_GO_CODES = {"OK": "OK", "CANCELLED": "Canceled"}
"""gRPC codes that Go does not write as `NOT_FOUND` -> `NotFound`."""


class ImageProblem(Struct, frozen=True, kw_only=True):
    """Why a container cannot have its image: `reason` and `message` of its waiting state.

    `retry_at`: loop time (seconds) from which on a retry makes sense; None: only after a change of the pod, of
    the node's images, or with the next regular sync."""

    reason: str
    message: str
    retry_at: float | None = None


def pull_problem(image: str, errors: tuple[RuntimeCallError, ...]) -> tuple[ImageReason, str, str]:
    """Failed tries, one per credential -> (reason, waiting message, the runtime's words).

    A reason that the runtime names counts only where it is the whole answer; with several tries it is one among others.
    """
    words = error_words(errors)
    first = errors[0]
    named = first.reason if len(errors) == 1 and isinstance(first, ImagePullFailed) else ""
    for reason, why in _WHY.items():
        if named == reason or words.startswith(reason):
            rest = words.removeprefix(reason) if words.startswith(reason) else f": {words}"
            return reason, f"image pull failed for {image} because {why}{rest}", words
    return ImageReason.PULL_FAILED, words, words


def error_words(errors: tuple[RuntimeCallError, ...]) -> str:
    """The runtime's words with the gRPC code in front (none for Unknown); several errors as `[a, b]`."""
    texts = list(dict.fromkeys(_words(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _words(error: RuntimeCallError) -> str:
    code = _GO_CODES.get(error.code) or error.code.title().replace("_", "")
    if code in {"", "Unknown"}:
        return error.message
    return f"rpc error: code = {code} desc = {error.message}"


def size_bucket(size: int) -> str:
    """The label value of `kubelet_image_pull_duration_seconds` for an image of that many bytes."""
    if size <= 0:
        return "N/A"
    mega, giga = 1 << 20, 1 << 30
    steps = (
        (0, "0-10MB"),
        (10 * mega, "10MB-100MB"),
        (100 * mega, "100MB-500MB"),
        (500 * mega, "500MB-1GB"),
        (1 * giga, "1GB-5GB"),
        (5 * giga, "5GB-10GB"),
        (10 * giga, "10GB-20GB"),
        (20 * giga, "20GB-30GB"),
        (30 * giga, "30GB-40GB"),
        (40 * giga, "40GB-60GB"),
        (60 * giga, "60GB-100GB"),
        (100 * giga, "GT100GB"),
    )
    return next(label for lower, label in reversed(steps) if size > lower)
