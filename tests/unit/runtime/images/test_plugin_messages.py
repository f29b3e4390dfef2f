"""The words between the agent and a credential provider plugin. Quotes: behaviours.md §25."""

from __future__ import annotations

import json
from typing import Any

import pytest

from glasslet.runtime.images.plugin_messages import CacheKey, PluginFailed, PluginQuestion, parse_answer

V1 = "credentialprovider.kubelet.k8s.io/v1"


def response(**changes: Any) -> bytes:
    body = {
        "kind": "CredentialProviderResponse",
        "apiVersion": V1,
        "cacheKeyType": "Registry",
        "cacheDuration": "5m0s",
        "auth": {"*.example": {"username": "ann", "password": "hunter2"}},
    }
    return json.dumps({**body, **changes}).encode()


# "stdin: request JSON {kind, apiVersion, image, serviceAccountToken?, serviceAccountAnnotations?}"
def test_a_question_names_the_image_and_only_what_there_is_of_the_account() -> None:
    plain = json.loads(PluginQuestion(image="r.example/app").encode(V1))
    assert plain == {"kind": "CredentialProviderRequest", "apiVersion": V1, "image": "r.example/app"}
    full = json.loads(PluginQuestion(image="r.example/app", token="t0ken", annotations={"a": "b"}).encode(V1))
    assert (full["serviceAccountToken"], full["serviceAccountAnnotations"]) == ("t0ken", {"a": "b"})


def test_neither_token_nor_password_is_shown() -> None:
    assert "t0ken" not in repr(PluginQuestion(image="r.example/app", token="t0ken"))
    assert "hunter2" not in repr(parse_answer(response(), V1))


# "response {kind, apiVersion, cacheKeyType Image|Registry|Global, cacheDuration?, auth{pattern:{username,password}}}"
def test_an_answer_is_read() -> None:
    answer = parse_answer(response(), V1)
    assert (answer.cache_key, answer.cache_seconds) == (CacheKey.REGISTRY, 300)
    assert [(p, a.username, a.password) for p, a in answer.auths.items()] == [("*.example", "ann", "hunter2")]


def test_no_duration_and_no_credentials_are_answers_too() -> None:
    answer = parse_answer(response(cacheDuration=None, auth=None), V1)
    assert (answer.cache_seconds, answer.auths) == (None, {})


# "a response of another version is an error"
def test_another_version_is_an_error() -> None:
    # behaviours.md §25: "Request/response credentialprovider.kubelet.k8s.io same version as configured per provider"
    with pytest.raises(PluginFailed, match=r"did not match expected apiVersion:\S+/v1, actual apiVersion:\S+/v1beta1$"):
        parse_answer(response(apiVersion="credentialprovider.kubelet.k8s.io/v1beta1"), V1)


def test_another_key_type_is_an_error() -> None:
    with pytest.raises(PluginFailed, match='valid cacheKeyType: "Pod", want Image, Registry, Global'):
        parse_answer(response(cacheKeyType="Pod"), V1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hunter2",
        b"[]",
        b"\xff\xfe",
        response()[:-1],
        response(auth={"a": "hunter2"}),
        response(auth={"a": {"password": "hunter2", "token": "hunter2"}}),
        response(hunter2=1),
        response(kind="hunter2"),
        response(cacheDuration="hunter2"),
        response(cacheDuration=5),
        b"[" * 100_000,
    ],
)
def test_what_cannot_be_read_is_an_error_that_shows_nothing_of_it(data: bytes) -> None:
    with pytest.raises(PluginFailed) as caught:
        parse_answer(data, V1)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
