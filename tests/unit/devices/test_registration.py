"""What a plugin may say of itself when it registers."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from glasslet.devices.registration import (
    FOLDER_VARIABLE,
    BadRegistration,
    check_registration,
    device_plugin_folder,
    plugin_socket,
    prepare_folder,
)


def test_a_plugin_of_this_version_with_an_extended_resource_is_taken() -> None:
    check_registration("example.com/gpu", ("v1beta1",))


@pytest.mark.parametrize(
    ("resource", "version", "text"),
    [
        ("cpu", "v1beta1", 'the ResourceName "cpu" is invalid'),
        ("kubernetes.io/gpu", "v1beta1", 'the ResourceName "kubernetes.io/gpu" is invalid'),
        ("", "v1beta1", 'the ResourceName "" is invalid'),
        (
            "example.com/gpu",
            "v1alpha1",
            'requested API version "v1alpha1" is not supported by kubelet. Supported version is ["v1beta1"]',
        ),
    ],
)
def test_others_are_refused_in_upstreams_words(resource: str, version: str, text: str) -> None:
    # behaviours.md §24: "The resource must be an extended resource name."
    with pytest.raises(BadRegistration) as caught:
        check_registration(resource, (version,))
    assert str(caught.value) == text


def test_the_folder_is_upstreams_unless_another_one_is_named() -> None:
    # behaviours.md §24: "The directory is /var/lib/kubelet/device-plugins whatever --root-dir says, mode 0750."
    assert device_plugin_folder({}) == "/var/lib/kubelet/device-plugins"
    assert device_plugin_folder({FOLDER_VARIABLE: "/other"}) == "/other"


@pytest.mark.parametrize("folder", ["relative", "/", "/a/../b", "/a/"])
def test_a_folder_that_cannot_be_meant_is_refused_with_its_name(folder: str) -> None:
    with pytest.raises(ValueError, match=f"{FOLDER_VARIABLE}={folder!r}: want a clean absolute path"):
        device_plugin_folder({FOLDER_VARIABLE: folder})


@pytest.mark.parametrize("endpoint", ["", "../other.sock", "a/../../b", "."])
def test_a_socket_outside_of_the_folder_is_refused(endpoint: str) -> None:
    with pytest.raises(BadRegistration, match="the endpoint"):
        plugin_socket("/plugins", endpoint)


def test_a_socket_is_looked_for_in_the_folder() -> None:
    assert plugin_socket("/plugins", "gpu.sock") == "/plugins/gpu.sock"
    assert plugin_socket("/plugins", "vendor/gpu.sock") == "/plugins/vendor/gpu.sock"


def test_only_sockets_are_removed_at_start(tmp_path: Path) -> None:
    # behaviours.md §24: "At kubelet start sockets in device-plugins are deleted; plugins must register again."
    (tmp_path / "kubelet_internal_checkpoint").write_text("{}")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "p.sock"))
    prepare_folder(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["folder", "kubelet_internal_checkpoint"]
