"""Which credentials fit which image. Quotes: behaviours.md §8."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest

from glasslet.runtime.images.keyring import BadKeyring, fits, keyring_of, parse_config_json, parse_dockercfg
from glasslet.runtime.protocols import RegistryAuth


def auth(name: str) -> RegistryAuth:
    return RegistryAuth(username=name, password=f"{name}-password")


def users(*keys: str, repository: str) -> list[str]:
    ring = keyring_of([{key: auth(key)} for key in keys])
    return [found.username for found in ring.matching(repository)]


# "Matching: host with the same number of dot parts, * per part (glob); ports must be equal, absence counts; path is a
# plain string prefix"
@pytest.mark.parametrize(
    ("key", "repository", "fit"),
    [
        ("registry.example", "registry.example/team/app", True),
        ("registry.example", "other.example/team/app", False),
        ("*.example", "registry.example/app", True),
        ("*.example", "eu.registry.example/app", False),
        ("*.*.example", "eu.registry.example/app", True),
        ("reg*.example", "registry.example/app", True),
        ("registry.example:5000", "registry.example/app", False),
        ("registry.example", "registry.example:5000/app", False),
        ("registry.example:5000", "registry.example:5000/app", True),
        ("registry.example/team", "registry.example/team/app", True),
        ("registry.example/te", "registry.example/team/app", True),
        ("registry.example/team/app/deep", "registry.example/team/app", False),
        ("registry.example/*", "registry.example/team/app", False),
        ("[fd00::1]:5000", "[fd00::1]:5000/app", True),
    ],
)
def test_key_fits_by_host_parts_port_and_path_prefix(key: str, repository: str, fit: bool) -> None:
    assert fits(key, repository) is fit


def test_longer_paths_come_first_and_all_that_fit_are_tried() -> None:
    # behaviours.md §8: "longer (reverse alphabetical) keys first"
    found = users(
        "registry.example",
        "registry.example/team/app",
        "registry.example/team",
        "*.example",
        repository="registry.example/team/app",
    )
    assert found == ["registry.example/team/app", "registry.example/team", "registry.example", "*.example"]


def test_two_credentials_under_one_key_are_both_tried_in_order() -> None:
    ring = keyring_of([{"registry.example": auth("old")}, {"registry.example": auth("new")}])
    assert [found.username for found in ring.matching("registry.example/app")] == ["old", "new"]


# "/v1/ and /v2/ prefixes of keys are dropped"
@pytest.mark.parametrize(
    "key", ["registry.example", "https://registry.example", "http://registry.example/v2/", "registry.example/v1/team"]
)
def test_scheme_and_version_of_a_key_do_not_count(key: str) -> None:
    assert users(key, repository="registry.example/team/app") == [key]


# "No match and an image of the default hub: the hub's legacy index key is tried."
@pytest.mark.parametrize("key", ["https://index.docker.io/v1/", "index.docker.io"])
def test_images_of_the_hub_use_its_legacy_key(key: str) -> None:
    assert users(key, repository="docker.io/library/busybox") == [key]


def test_legacy_key_of_the_hub_is_only_used_when_nothing_else_fits() -> None:
    assert users("https://index.docker.io/v1/", "docker.io", repository="docker.io/acme/app") == ["docker.io"]
    assert users("https://index.docker.io/v1/", repository="registry.example/acme/app") == []


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "entry",
    [
        {"username": "ann", "password": "p:w"},
        {"auth": _encoded("ann:p:w")},
        {"auth": _encoded("ann:p:w").rstrip("=")},
        {"username": "other", "password": "x", "auth": _encoded("ann:p:w"), "email": "a@example"},
    ],
)
def test_both_forms_of_configuration_give_user_and_password(entry: dict[str, Any]) -> None:
    wanted = {"registry.example": RegistryAuth(username="ann", password="p:w")}
    assert parse_config_json(json.dumps({"auths": {"registry.example": entry}}).encode()) == wanted
    assert parse_dockercfg(json.dumps({"registry.example": entry}).encode()) == wanted


@pytest.mark.parametrize(
    "data",
    [
        b'{"auths": {"r": {"auth": "hunter2"',
        b'"hunter2"',
        b'{"auths": "hunter2"}',
        b'{"auths": {"r": "hunter2"}}',
        b'{"auths": {"r": {"username": ["hunter2"]}}}',
        b'{"auths": {"r": {"auth": "hunter2 is no base64!"}}}',
        json.dumps({"auths": {"r": {"auth": _encoded("hunter2")}}}).encode(),
    ],
)
def test_what_cannot_be_read_is_told_without_showing_it(data: bytes) -> None:
    with pytest.raises(BadKeyring) as problem:
        parse_config_json(data)
    assert "hunter2" not in str(problem.value)
    assert problem.value.__cause__ is None


def test_configuration_without_auths_holds_none() -> None:
    assert parse_config_json(b'{"HttpHeaders": {}}') == {}


def test_credentials_do_not_show_in_a_keyring_s_repr() -> None:
    assert "hunter2" not in repr(keyring_of([{"r": RegistryAuth(username="hunter2", password="hunter2")}]))


def test_secret_with_very_many_keys_of_one_place_costs_little_time() -> None:
    # A Secret of 1 MiB has as many; with a copy for each key they took ten seconds.
    config = {f"registry.example/team?{number}": RegistryAuth() for number in range(60_000)}
    began = time.process_time()
    assert len(keyring_of([config]).entries["registry.example/team"]) == 60_000
    assert time.process_time() - began < 2.0
