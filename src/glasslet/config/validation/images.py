"""Rules about image pulls, their credentials and image garbage collection."""

from __future__ import annotations

import re
from collections.abc import Iterator

from glasslet.config.validation.finding import Finding, ValidationInput, invalid, quoted
from glasslet.config.validation.numbers import named

_POLICY = "imagePullCredentialsVerificationPolicy"
_ALLOWLIST = "preloadedImagesVerificationAllowlist"
_POLICIES = ("NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify")
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_IMAGE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*", re.ASCII)


def check_pulls(subject: ValidationInput) -> Iterator[Finding]:
    """Parallel pulls."""
    configuration = subject.configuration
    limit = configuration.max_parallel_image_pulls
    if limit is None:
        return
    if limit < 1:
        yield invalid("maxParallelImagePulls", f"maxParallelImagePulls {limit} must be a positive number", "1 or more")
    elif limit > 1 and configuration.serialize_image_pulls:
        text = (
            f"maxParallelImagePulls {limit} is larger than 1, which needs SerializeImagePulls "
            "(--serialize-image-pulls) false"
        )
        yield invalid("maxParallelImagePulls", text, "1, or serializeImagePulls: false")


def check_image_collection(subject: ValidationInput) -> Iterator[Finding]:
    """The age limit of unused images."""
    configuration = subject.configuration
    longest, shortest = configuration.image_maximum_gc_age, configuration.image_minimum_gc_age
    if longest.nanoseconds and not subject.gates.enabled("ImageMaximumGCAge"):
        yield invalid("imageMaximumGCAge", "imageMaximumGCAge requires feature gate ImageMaximumGCAge", "0s")
    if longest < 0:
        yield invalid("imageMaximumGCAge", f"imageMaximumGCAge {longest} must not be negative", "0s or longer")
    if 0 < longest <= shortest:
        text = f"imageMaximumGCAge {longest} must be greater than {named('imageMinimumGCAge')} {shortest}"
        yield invalid("imageMaximumGCAge", text, f"0s, or longer than {shortest}")


def check_credential_verification(subject: ValidationInput) -> Iterator[Finding]:
    """When present images need their credentials checked again."""
    configuration = subject.configuration
    policy = configuration.image_pull_credentials_verification_policy
    allowlist = configuration.preloaded_images_verification_allowlist
    if not subject.gates.enabled("KubeletEnsureSecretPulledImages"):
        for field, value in ((_POLICY, policy), (_ALLOWLIST, allowlist)):
            if value:
                text = f"`{field}` must not be set while feature gate KubeletEnsureSecretPulledImages is off"
                yield invalid(field, text, "unset")
        return
    if policy not in _POLICIES:
        yield invalid(_POLICY, f'option "{policy}" of {_POLICY} is unknown. Valid options are {quoted(_POLICIES)}')
    if allowlist and policy != "NeverVerifyAllowlistedImages":
        # The misspelling is upstream's, and tools match on it.
        misspelt = "imagePullCredentialsVertificationPolicy"
        text = f'`{_ALLOWLIST}` needs `{misspelt}` "NeverVerifyAllowlistedImages"'
        yield invalid(_ALLOWLIST, text)
        return
    for index, pattern in enumerate(allowlist):
        if reason := _pattern_problem(pattern):
            text = f"invalid image pattern in `{_ALLOWLIST}`: {reason}: {pattern}"
            yield invalid(f"{_ALLOWLIST}[{index}]", text)


def _pattern_problem(pattern: str) -> str:
    if pattern != pattern.strip():
        return "blanks around it are not allowed"
    wildcard = pattern.endswith("/*")
    plain = pattern[:-1] if wildcard else pattern
    if not plain:
        return "it is empty"
    if "*" in plain:
        return "a wildcard is allowed only as the last whole segment '/*'"
    if wildcard:
        return "at least a registry host is required" if plain == "/" else ""
    if "@" in plain or ":" in plain.rsplit("/", 1)[-1]:
        return "a tag or digest is not allowed"
    return "" if _IMAGE.fullmatch(plain) else "it is no image name"
