from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from glasslet.api.env import EnvVar, EnvVarSource, FileKeySelector
from glasslet.exchange.volume import MountedVolume
from glasslet.pods.verbs.env_files import file_keys
from glasslet.podspec.errors import ConfigError
from tests.builders.pod import container
from tests.builders.podspec import pod_of
from tests.fakes.pod_node import FakePodFiles


async def look_up(
    root: Path, key: str = "A", *, volume: str = "data", path: str = "env", optional: bool = False
) -> object:
    selector = FileKeySelector(volume_name=volume, path=path, key=key, optional=optional)
    entry = EnvVar(name="X", value_from=EnvVarSource(file_key_ref=selector))
    volumes = {"data": MountedVolume(name="data", path=str(root))}
    one = container(env=(EnvVar(name="FIRST", value="1"), entry))
    return await file_keys(FakePodFiles(), pod_of(), one, volumes)


async def test_a_key_of_a_file_is_the_value_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("A=one\n")
    assert await look_up(tmp_path) == {1: "one"}


async def test_an_optional_key_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("B=one\n")
    assert await look_up(tmp_path, optional=True) == {1: None}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"key": "B"}, 'environment variable key "B" not found in file "env" of volume "data"'),
        ({"volume": "none"}, 'cannot find the volume "none" referenced by FileKeyRef'),
        (
            {"path": "none"},
            'couldn\'t parse env file "none" in volume "data": No such file or directory',
        ),
        ({"key": "K" * 129}, f'environment variable key "{"K" * 129}" exceeds maximum length of 128 characters'),
        ({"key": "LONG"}, 'environment variable value for key "LONG" exceeds maximum size of 32KB'),
    ],
)
async def test_what_cannot_be_had_holds_the_container_back(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    # behaviours.md §21: "fileKeyRef (gate EnvFiles, alpha, off): key up to 128, value up to 32 KiB characters."
    (tmp_path / "env").write_text(f"A=one\nLONG={'x' * 32769}\n")
    with pytest.raises(ConfigError) as caught:
        await look_up(tmp_path, **changes)
    assert (caught.value.reason, caught.value.message) == ("CreateContainerConfigError", problem)
