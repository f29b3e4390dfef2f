"""Arguments and results are shown in short, and no secret is."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

import msgspec
import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.calls.short import LONGEST_LINE, arguments_of, result_of, shows_text
from tests.builders.pod import pod

HERE = "glasslet/pods/worker.py"


class Env(msgspec.Struct):
    """As the API's type of this name."""

    name: str
    value: str


class Token(msgspec.Struct):
    name: str


@dataclass
class Action:
    name: str
    value: str


class Curious:
    """Counts the calls of its own methods."""

    asked = 0

    def __repr__(self) -> str:
        Curious.asked += 1
        return "curious"

    def __getattr__(self, name: str) -> Any:
        Curious.asked += 1
        raise AttributeError(name)

    def __len__(self) -> int:
        Curious.asked += 1
        return 1


def shown(file: str = HERE, /, **values: object) -> str:
    """The arguments of a function that gets these."""
    names = ", ".join(values)
    frames: list[FrameType] = []
    scope: dict[str, Any] = {"keep": lambda: frames.append(sys._getframe(1))}
    exec(f"def call({names}):\n    keep()\n", scope)
    scope["call"](**values)
    return arguments_of(frames[0], file)


def test_names_paths_and_numbers_are_shown() -> None:
    text = shown(container="main", path="/var/lib/kubelet/pods", attempt=3, enabled=True, seconds=1.5, error=None)
    assert text == "container=main, path=/var/lib/kubelet/pods, attempt=3, enabled=True, seconds=1.5, error=None"


def test_a_pod_is_shown_by_its_name() -> None:
    assert shown(pod=pod(name="web")) == "pod=Pod default/web"
    assert shown(ref=PodRef("shop", "web", PodUID("1"))) == "ref=PodRef shop/web"


@pytest.mark.parametrize("name", ["token", "password", "value", "data", "secret_name", "env", "auth", "text", "body"])
def test_text_that_is_no_name_becomes_its_length(name: str) -> None:
    assert shown(**{name: "squirrel"}) == f"{name}=<8 characters>"


def test_bytes_become_their_length_under_any_name() -> None:
    assert shown(path=b"squirrel") == "path=<8 bytes>"


def test_entries_of_maps_and_texts_in_lists_are_not_shown() -> None:
    text = shown(data={"password": "squirrel"}, names=["squirrel", "a"], many=list(range(100)))
    assert text == "data={1}, names=[<8 characters>, <1 characters>], many=[100]"


def test_a_value_of_an_environment_variable_is_not_shown() -> None:
    assert shown(one=Env("PASSWORD", "squirrel")) == "one=Env"
    assert shown(one=Action("main", "squirrel")) == "one=Action main"


def test_an_object_whose_class_is_a_credential_has_no_name() -> None:
    assert shown(one=Token("squirrel")) == "one=Token"


@pytest.mark.parametrize("room", ["glasslet/identity/manager.py", "glasslet/kubeapi/objects/cache.py"])
def test_code_that_handles_credentials_shows_no_text(room: str) -> None:
    assert shown(room, name="squirrel") == "name=<8 characters>"


def test_no_method_of_a_strange_object_is_called() -> None:
    assert shown(one=Curious(), more=[Curious()]) == "one=Curious, more=[Curious]"
    assert Curious.asked == 0


def test_arguments_are_bounded() -> None:
    text = shown(path="x" * 200, **{f"path_{number}": "y" * 59 for number in range(20)})
    assert len(text) <= LONGEST_LINE + 3
    assert text.endswith("…")


def test_a_huge_number_is_not_printed() -> None:
    assert shown(number=1 << 100_000) == "number=int of 100001 bits"


def test_a_result_has_the_name_of_its_function() -> None:
    def log_path() -> str:
        return ""

    def read() -> str:
        return ""

    assert result_of("/var/log/x", log_path.__code__, HERE) == "/var/log/x"
    assert result_of("squirrel", read.__code__, HERE) == "<8 characters>"
    assert result_of(None, read.__code__, HERE) == ""


def test_text_with_control_characters_is_quoted() -> None:
    assert shown(path="a\x1b[31m") == r"path='a\x1b[31m'"


@pytest.mark.parametrize(
    ("name", "is_name"), [("containerName", True), ("token_path", False), ("", False), ("_", False)]
)
def test_the_last_word_decides(name: str, is_name: bool) -> None:
    assert shows_text(name, HERE) is is_name
