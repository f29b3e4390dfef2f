"""Completion as the shells call it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.builders.pod import container, pod
from tests.fakes.glass import FakeSeenPod, fake_agent

MAIN = "from glasslet.cli.app import main; main()"


async def output(*command: str, **environment: str) -> str:
    """What a successful process prints."""
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **environment}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert (process.returncode, err.decode()) == (0, "")
    return out.decode()


async def offered(root_dir: Path, line: str) -> list[str]:
    """The completions of the last word of a line."""
    answer = await output(
        sys.executable, "-c", MAIN, GLASSLET_ROOT=str(root_dir), _GLASSLET_COMPLETE="bash_complete",
        COMP_WORDS=line, COMP_CWORD=str(len(line.split(" ")) - 1),
    )  # fmt: skip
    return [item.partition(",")[2] for item in answer.split()]


async def test_commands_pods_and_containers_are_offered(tmp_path: Path) -> None:
    async with fake_agent(tmp_path) as agent:
        agent.source.seen.append(FakeSeenPod(pod=pod(container(), container("log"))))
        assert await offered(tmp_path, "glasslet wa") == ["waits"]
        assert await offered(tmp_path, "glasslet describe w") == ["web"]
        assert await offered(tmp_path, "glasslet describe default/") == ["default/web"]
        assert await offered(tmp_path, "glasslet logs web -c ") == ["main", "log"]
        assert await offered(tmp_path, "glasslet logs -n d") == ["default"]


async def test_without_an_agent_no_pod_is_offered(tmp_path: Path) -> None:
    assert await offered(tmp_path, "glasslet logs ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_the_script_is_one_that_the_shell_reads(tmp_path: Path, shell: str) -> None:
    script = await output(sys.executable, "-c", MAIN, "completion", shell)
    assert "_GLASSLET_COMPLETE" in script
    interpreter = shutil.which(shell)
    if interpreter is not None:
        (tmp_path / "script").write_text(script)
        await output(interpreter, "-n", str(tmp_path / "script"))


async def test_a_wrong_command_does_not_end_completion_with_an_error(tmp_path: Path) -> None:
    assert "ps" in await offered(tmp_path, "glasslet nothing ")
