"""The grammar of image names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasslet.runtime.images.reference import (
    InvalidImageName,
    default_pull_policy,
    parse_image_name,
    with_default_tag,
)

SHA = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("acme/job", "docker.io/acme/job:latest"),
        ("docker.io/busybox", "docker.io/library/busybox:latest"),
        ("index.docker.io/busybox", "docker.io/library/busybox:latest"),
        ("index.docker.io/acme/job:7", "docker.io/acme/job:7"),
        ("localhost/job", "localhost/job:latest"),
        ("localhost:5000/job", "localhost:5000/job:latest"),
        ("registry.example.com/a/b/c:v1", "registry.example.com/a/b/c:v1"),
        ("registry.example.com:443/a:v1", "registry.example.com:443/a:v1"),
        ("[::1]:5000/a:v1", "[::1]:5000/a:v1"),
        ("10.0.0.1/a", "10.0.0.1/a:latest"),
        ("UPPER/a", "UPPER/a:latest"),
        ("a__b/c-_d".replace("-_", "--"), "docker.io/a__b/c--d:latest"),
        (f"busybox@{SHA}", f"docker.io/library/busybox@{SHA}"),
        (f"busybox:1@{SHA}", f"docker.io/library/busybox:1@{SHA}"),
        ("a:" + "t" * 128, "docker.io/library/a:" + "t" * 128),
        ("a" * 247, f"docker.io/library/{'a' * 247}:latest"),
    ],
)
def test_a_name_has_one_normal_form(text: str, normal: str) -> None:
    assert str(parse_image_name(text)) == normal


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "invalid reference format"),
        ("a b", "invalid reference format"),
        ("a:", "invalid reference format"),
        ("a@sha256:12", "invalid reference format"),
        ("-a", "invalid reference format"),
        ("a//b", "invalid reference format"),
        ("a:t:u", "invalid reference format"),
        ("http://a/b", "invalid reference format"),
        ("a\n", "invalid reference format"),
        ("BusyBox", "invalid reference format: repository name (library/BusyBox) must be lowercase"),
        ("x.io/Job", "invalid reference format: repository name (Job) must be lowercase"),
        ("a" * 248, "repository name must not be more than 255 characters"),
        ("a:" + "t" * 129, "invalid reference format"),
        ("ab" * 32, f"invalid repository name ({'ab' * 32}), cannot specify 64-byte hexadecimal strings"),
        ("a@md5:" + "0" * 32, "unsupported digest algorithm"),
        ("a@sha256:" + "0" * 40, "invalid checksum digest length"),
        ("a@sha256:" + "AB" * 32, "invalid checksum digest format"),
    ],
)
def test_a_text_that_is_no_name_is_refused_with_the_known_words(text: str, why: str) -> None:
    with pytest.raises(InvalidImageName) as raised:
        parse_image_name(text)
    assert str(raised.value) == f'couldn\'t parse image name "{text}": {why}'


@pytest.mark.parametrize(
    ("written", "passed"),
    [
        ("busybox", "busybox:latest"),
        ("busybox:1", "busybox:1"),
        ("localhost:5000/a", "localhost:5000/a:latest"),
        (f"busybox@{SHA}", f"busybox@{SHA}"),
    ],
)
def test_only_a_missing_tag_is_added(written: str, passed: str) -> None:
    # behaviours.md §8: "Name without tag or digest gets :latest; names are otherwise passed as written."
    assert with_default_tag(written) == passed


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        (f"a:latest@{SHA}", "Always"),
        ("a:1", "IfNotPresent"),
        (f"a@{SHA}", "IfNotPresent"),
        ("localhost:5000/a", "Always"),
        ("not a name", "IfNotPresent"),
    ],
)
def test_the_policy_follows_from_the_tag(image: str, policy: str) -> None:
    # behaviours.md §8: "Default pull policy comes from the API (Always for :latest or no tag, else IfNotPresent)."
    assert default_pull_policy(image) == policy


@given(st.text(max_size=80))
def test_any_text_is_a_name_or_an_error(text: str) -> None:
    try:
        name = parse_image_name(text)
    except InvalidImageName:
        return
    assert parse_image_name(str(name)).repository == name.repository


@given(st.from_regex(r"\A[a-z0-9]{1,9}(\.[a-z0-9]{1,5})?(/[a-z0-9_.-]{1,9}){0,2}(:[a-z0-9.]{1,9})?\Z"))
def test_the_normal_form_is_its_own_normal_form(text: str) -> None:
    try:
        normal = str(parse_image_name(text))
    except InvalidImageName:
        return
    assert str(parse_image_name(normal)) == normal
