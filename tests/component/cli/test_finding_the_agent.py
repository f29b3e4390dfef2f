"""The agent is found by its socket when no root folder is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from glasslet.cli import agent_client
from glasslet.cli.agent_client import find_agent, listening_agents
from glasslet.cli.failure import Failure
from tests.fakes.glass import fake_agent


@pytest.fixture(autouse=True)
def only_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other agents of this machine, and those in the usual places, do not count."""
    everywhere = listening_agents

    def below() -> list[agent_client.AgentClient]:
        return [client for client in everywhere() if client.root_dir.is_relative_to(tmp_path)]

    monkeypatch.setattr(agent_client, "ROOT_DIRS", (str(tmp_path / "none"),))
    monkeypatch.setattr(agent_client, "listening_agents", below)


async def test_the_one_agent_that_runs_is_found(tmp_path: Path) -> None:
    async with fake_agent(tmp_path):
        assert find_agent(None).root_dir == tmp_path


async def test_of_several_agents_none_is_chosen(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    async with fake_agent(first), fake_agent(second):
        with pytest.raises(Failure, match=re.escape(f"--root-dir or GLASSLET_ROOT: {first}, {second}")):
            find_agent(None)


async def test_a_named_root_folder_is_taken_whatever_runs(tmp_path: Path) -> None:
    async with fake_agent(tmp_path):
        assert find_agent(tmp_path / "other").root_dir == tmp_path / "other"


async def test_without_any_agent_the_usual_place_is_named(tmp_path: Path) -> None:
    assert find_agent(None).root_dir == tmp_path / "none"


def test_only_listening_sockets_of_agents_count(tmp_path: Path) -> None:
    table = tmp_path / "unix"
    table.write_text(
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "0000: 00000002 00000000 00010000 0001 01 1 /var/a b/glasslet.sock\n"
        "0000: 00000003 00000000 00000000 0001 03 2 /var/connected/glasslet.sock\n"
        "0000: 00000002 00000000 00010000 0001 01 3 /run/containerd.sock\n"
        "0000: 00000002 00000000 00010000 0001 01 4 @abstract/glasslet.sock\n"
        "0000: 00000002 00000000 00010000 0001 01 5\n"
    )
    assert [str(client.root_dir) for client in listening_agents(table)] == ["/var/a b"]
