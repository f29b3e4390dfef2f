"""Endpoints: what is a socket, what is refused and how."""

from __future__ import annotations

import pytest

from glasslet.runtime.cri.endpoint import EndpointError, socket_path


@pytest.mark.parametrize(
    "endpoint",
    [
        "unix:///run/containerd/containerd.sock",
        "/run/containerd/containerd.sock",
        "unix:/run/containerd/containerd.sock",
    ],
)
def test_a_path_and_a_unix_url_name_the_same_socket(endpoint: str) -> None:
    assert socket_path(endpoint) == "/run/containerd/containerd.sock"


def test_a_url_may_escape_what_a_path_holds() -> None:
    assert socket_path("unix:///run/my%20runtime.sock") == "/run/my runtime.sock"


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        ("tcp://127.0.0.1:1234", 'the scheme "tcp" is not supported'),
        ("http://localhost/", 'the scheme "http" is not supported'),
        ("npipe:////./pipe/containerd", 'the scheme "npipe" is not supported'),
        ("", "it names no socket"),
        ("unix://", "it names no socket"),
        ("unix://run/containerd.sock", '"run" is read as a host: write three slashes'),
        ("containerd.sock", 'the path "containerd.sock" is not absolute'),
        ("/" + 107 * "x", "the path is longer than 107 bytes"),
    ],
)
def test_what_cannot_be_dialled_is_one_clear_error(endpoint: str, problem: str) -> None:
    with pytest.raises(EndpointError) as refused:
        socket_path(endpoint, setting="imageServiceEndpoint")

    assert str(refused.value) == (
        f'imageServiceEndpoint: invalid value "{endpoint}": {problem}; allowed: a path or unix:///path/to/socket'
    )
