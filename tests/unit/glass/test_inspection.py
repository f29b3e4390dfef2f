"""What `inspect` shows, and what it hides."""

from __future__ import annotations

from glasslet.api.env import EnvVar
from glasslet.glass.inspection.plain import plain
from glasslet.glass.inspection.requests import shown_request
from glasslet.runtime.cri._generated import container_pb2, image_pb2, linux_pb2, runtime_pb2
from tests.builders.observed import exited_container
from tests.builders.pod import container, pod


def create_request() -> runtime_pb2.CreateContainerRequest:
    config = container_pb2.ContainerConfig(
        envs=[
            linux_pb2.KeyValue(key="PLAIN", value=b"shown"),
            linux_pb2.KeyValue(key="KEY", value=b"open-sesame"),
            linux_pb2.KeyValue(key="URL", value=b"http://u:open-sesame@h"),
        ],
        command=["serve"],
        args=["--key=open-sesame", "--quiet"],
    )
    return runtime_pb2.CreateContainerRequest(pod_sandbox_id="s", config=config)


ONE = pod(
    container(
        command=("serve",),
        args=("--key=$(KEY)", "--quiet"),
        env=(EnvVar(name="PLAIN", value="shown"), EnvVar(name="KEY"), EnvVar(name="URL", value="http://u:$(KEY)@h")),
    )
)


def test_values_and_words_that_had_something_put_in_are_shown_as_their_length() -> None:
    config = shown_request(create_request(), ONE, "main")["config"]
    assert config["envs"] == [
        {"key": "PLAIN", "value": "shown"},
        {"key": "KEY", "value": "<11 characters>"},
        {"key": "URL", "value": "<22 characters>"},
    ]
    assert config["command"] == ["serve"]
    assert config["args"] == ["<17 characters>", "--quiet"]


def test_without_the_pod_no_text_of_a_container_is_shown() -> None:
    assert "shown" not in str(shown_request(create_request(), None, "main"))


def test_credentials_of_a_registry_are_not_shown() -> None:
    request = image_pb2.PullImageRequest(auth=image_pb2.AuthConfig(username="me", password="open-sesame"))
    assert "open-sesame" not in str(shown_request(request, ONE, "main"))
    assert "me" not in shown_request(request, ONE, "main")["auth"]


def test_structures_are_shown_with_the_names_of_the_wire_and_times_in_utc() -> None:
    tree = plain(exited_container(code=3, labels={"my_label": "x"}))
    assert tree["exitCode"] == 3
    assert tree["phase"] == "exited"
    assert tree["finishedAt"] == "2026-01-01T00:00:10.000Z"
    assert tree["labels"] == {"my_label": "x"}
    assert "message" not in tree
