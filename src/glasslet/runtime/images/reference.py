"""Image names: the grammar of the distribution project (`[domain/]path[:tag][@digest]`) and its normal form. Pure.

A familiar name stands for one at the default registry: `busybox` is `docker.io/library/busybox`. The runtime gets the
name as it is written (other runtimes have other default registries), only a missing tag is made explicit.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

DEFAULT_DOMAIN: Final = "docker.io"
DEFAULT_TAG: Final = "latest"
_OLD_DEFAULT_DOMAIN: Final = "index.docker.io"
_OFFICIAL: Final = "library/"
_LONGEST_PATH: Final = 255
_DIGEST_LENGTHS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}

_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<domain>{_HOST}(?::[0-9]+)?)/(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")
_LOWER_HEX = re.compile(r"[a-f0-9]+")


class InvalidImageName(ValueError):
    """The text is no image name; the message is the one of the Go kubelet."""


class ImageName(Struct, frozen=True, kw_only=True):
    """A name in normal form. `tag` and `digest` (`sha256:...`) are "" where the text has none."""

    domain: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """`docker.io/library/busybox`: what credentials are looked up for."""
        return f"{self.domain}/{self.path}"

    @property
    def effective_tag(self) -> str:
        """The tag that is meant: `latest` where neither tag nor digest is given."""
        return self.tag or ("" if self.digest else DEFAULT_TAG)

    def __str__(self) -> str:
        tag = self.effective_tag
        return self.repository + (f":{tag}" if tag else "") + (f"@{self.digest}" if self.digest else "")


def parse_image_name(text: str) -> ImageName:
    """Parses an image name of a pod's spec. Raises InvalidImageName."""
    try:
        return _parse(text)
    except ValueError as error:
        raise InvalidImageName(f'couldn\'t parse image name "{text}": {error}') from None


def with_default_tag(text: str) -> str:
    """The name as written, with `:latest` where it has neither tag nor digest. Raises InvalidImageName."""
    name = parse_image_name(text)
    return text if name.tag or name.digest else f"{text}:{DEFAULT_TAG}"


def default_pull_policy(image: str) -> str:
    """`Always` for the tag `latest`, given or meant, else `IfNotPresent`; the API's default for `imagePullPolicy`."""
    try:
        tag = parse_image_name(image).effective_tag
    except InvalidImageName:
        return "IfNotPresent"
    return "Always" if tag == DEFAULT_TAG else "IfNotPresent"


def _parse(text: str) -> ImageName:
    if _IDENTIFIER.fullmatch(text):
        raise ValueError(f"invalid repository name ({text}), cannot specify 64-byte hexadecimal strings")
    domain, rest = _split_domain(text)
    path = rest.partition(":")[0]
    if path != path.lower():
        raise ValueError(f"invalid reference format: repository name ({path}) must be lowercase")
    found = _REFERENCE.fullmatch(f"{domain}/{rest}")
    if found is None:
        raise ValueError("invalid reference format")
    if len(found["path"]) > _LONGEST_PATH:
        raise ValueError(f"repository name must not be more than {_LONGEST_PATH} characters")
    digest = found["digest"] or ""
    _check_digest(digest)
    return ImageName(domain=found["domain"], path=found["path"], tag=found["tag"] or "", digest=digest)


def _split_domain(text: str) -> tuple[str, str]:
    first, slash, rest = text.partition("/")
    if not slash:
        return DEFAULT_DOMAIN, _OFFICIAL + text
    if first == _OLD_DEFAULT_DOMAIN:
        domain = DEFAULT_DOMAIN
    elif first == "localhost" or "." in first or ":" in first or first != first.lower():
        domain = first
    else:
        domain, rest = DEFAULT_DOMAIN, text
    if domain == DEFAULT_DOMAIN and "/" not in rest:
        rest = _OFFICIAL + rest
    return domain, rest


def _check_digest(digest: str) -> None:
    if not digest:
        return
    algorithm, _, encoded = digest.partition(":")
    if algorithm not in _DIGEST_LENGTHS:
        raise ValueError("unsupported digest algorithm")
    if len(encoded) != _DIGEST_LENGTHS[algorithm]:
        raise ValueError("invalid checksum digest length")
    if not _LOWER_HEX.fullmatch(encoded):
        raise ValueError("invalid checksum digest format")
