"""Plugins as real processes: what they get, how they may fail, that none is left behind. Quotes: behaviours.md §25."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from pathlib import Path

import pytest

from glasslet.concurrency.clock import SystemClock
from glasslet.config.credential_providers import CredentialProvider, EnvironmentVariable
from glasslet.record.stations import WaitKind
from glasslet.runtime.images import plugin_process
from glasslet.runtime.images.plugin_messages import PluginAnswer, PluginFailed, PluginQuestion
from glasslet.runtime.images.plugin_process import PluginProcess
from tests.fakes.waits import WaitLog

V1 = "credentialprovider.kubelet.k8s.io/v1"
ANSWER = json.dumps(
    {
        "kind": "CredentialProviderResponse",
        "apiVersion": V1,
        "cacheKeyType": "Image",
        "auth": {"a.example": {"username": "ann", "password": "hunter2"}},
    }
)


class Plugin:
    """A shell script in the directory of plugins."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        path = folder / "plugin"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        self.waits = WaitLog()
        self.runs: list[tuple[str, bool]] = []

    def ran(self, plugin: str, seconds: float, *, failed: bool) -> None:
        self.runs.append((plugin, failed))

    async def ask(self, token: str = "") -> PluginAnswer:
        provider = CredentialProvider(
            name="plugin",
            api_version=V1,
            args=("--for", "a b"),
            env=(EnvironmentVariable(name="REGION", value="north $HOME"),),
        )
        process = PluginProcess(
            provider=provider, directory=str(self.folder), recorder=self.waits, metrics=self, clock=SystemClock()
        )
        return await process.ask(PluginQuestion(image="a.example/app", token=token))


# "executable <bin-dir>/<name>; args and env from config added to the process environment; stdin: request JSON"
async def test_a_plugin_gets_arguments_environment_and_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_AGENT", "yes")
    script = f"cat > {tmp_path}/request; echo \"$1|$2|$REGION|$OF_THE_AGENT\" > {tmp_path}/seen; echo '{ANSWER}'"
    plugin = Plugin(tmp_path, script)
    answer = await plugin.ask()
    assert answer.auths["a.example"].password == "hunter2"
    assert (tmp_path / "seen").read_text().strip() == "--for|a b|north $HOME|yes"
    request = json.loads((tmp_path / "request").read_text())
    assert request == {"kind": "CredentialProviderRequest", "apiVersion": V1, "image": "a.example/app"}
    assert plugin.runs == [("plugin", False)]
    assert plugin.waits.ended == [(WaitKind.CREDENTIALS, "credential provider plugin for a.example/app")]


async def test_a_plugin_need_not_read_its_request(tmp_path: Path) -> None:
    assert (await Plugin(tmp_path, f"exec 0<&-; echo '{ANSWER}'").ask()).auths


async def test_a_plugin_that_fails_is_counted_and_what_it_said_is_told_without_the_token(tmp_path: Path) -> None:
    # behaviours.md §25: "stderr to the log"
    plugin = Plugin(tmp_path, "cat >&2; echo no network >&2; exit 3")
    with pytest.raises(PluginFailed) as caught:
        await plugin.ask(token="t0ken")
    text = str(caught.value)
    assert text.startswith("error execing credential provider plugin plugin for image a.example/app: exit status 3: ")
    assert text.endswith("no network")
    assert "t0ken" not in text
    assert plugin.runs == [("plugin", True)]


async def test_a_plugin_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, "")
    (tmp_path / "plugin").unlink()
    with pytest.raises(PluginFailed, match="No such file or directory"):
        await plugin.ask()
    assert plugin.runs == [("plugin", True)]


async def test_an_endless_answer_is_not_kept_in_memory(tmp_path: Path) -> None:
    with pytest.raises(PluginFailed, match="longer than"):
        await Plugin(tmp_path, "head -c 3000000 /dev/zero").ask()


# "Time limit 1 min"
async def test_a_plugin_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plugin_process.LIMIT_SECONDS == 60.0
    monkeypatch.setattr(plugin_process, "LIMIT_SECONDS", 0.5)
    plugin = Plugin(tmp_path, f"export MARK={tmp_path}; sleep 1000 & wait")
    with pytest.raises(PluginFailed, match=r"no answer within 0.5 s"):
        await plugin.ask()
    assert plugin.runs == [("plugin", True)]
    async with asyncio.timeout(60):
        while _carry(f"MARK={tmp_path}"):
            await asyncio.sleep(0.01)


async def test_a_pod_that_is_given_up_ends_its_plugin(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, f"echo $$ > {tmp_path}/.pid; mv {tmp_path}/.pid {tmp_path}/pid; exec sleep 1000")
    asking = asyncio.ensure_future(plugin.ask())
    async with asyncio.timeout(60):
        while not (tmp_path / "pid").exists():
            await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await _ended(int((tmp_path / "pid").read_text()))


async def _ended(pid: int) -> None:
    async with asyncio.timeout(60):
        while _runs(pid):
            await asyncio.sleep(0.01)


def _carry(mark: str) -> list[int]:
    """Processes with this in their environment."""
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_environment_of_the_agent_is_read_for_every_run() -> None:
    defaults = PluginProcess.__init__.__kwdefaults__
    assert defaults is not None
    assert defaults["environment"]() is os.environ
