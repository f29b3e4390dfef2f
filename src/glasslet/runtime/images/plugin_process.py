"""Runs a credential provider plugin: the executable itself, without a shell, for a minute at most."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from glasslet.concurrency.child_process import end, read_bounded
from glasslet.concurrency.clock import Clock
from glasslet.config.credential_providers import CredentialProvider
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.images.plugin_messages import PluginAnswer, PluginFailed, PluginQuestion, parse_answer

LIMIT_SECONDS = 60.0
"""credential.exec_timeout."""
_LONGEST_ANSWER = 1 << 20
_LONGEST_COMPLAINT = 1000


class PluginMetrics(Protocol):
    """Metrics of plugins."""

    def ran(self, plugin: str, seconds: float, *, failed: bool) -> None:
        """A run ended. `failed`: it did not end by itself with exit code 0."""


class PluginProcess:
    """One plugin. Every request runs a process of its own, in a process group of its own."""

    def __init__(
        self,
        *,
        provider: CredentialProvider,
        directory: str,
        recorder: Recorder,
        metrics: PluginMetrics,
        clock: Clock,
        environment: Callable[[], Mapping[str, str]] = lambda: os.environ,
    ) -> None:
        self._provider = provider
        self._path = f"{directory}/{provider.name}"
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._environment = environment

    async def ask(self, question: PluginQuestion) -> PluginAnswer:
        """The plugin's answer. Raises PluginFailed, with what the plugin said on standard error."""
        version = self._provider.api_version
        on = f"credential provider {self._provider.name} for {question.image}"
        with self._recorder.wait(WaitKind.CREDENTIALS, on=on):
            return parse_answer(await self._run(question.encode(version), question), version)

    async def _run(self, request: bytes, question: PluginQuestion) -> bytes:
        began, failed = self._clock.monotonic(), True
        what = f"error execing credential provider plugin {self._provider.name} for image {question.image}"
        try:
            process = await self._start()
            try:
                async with asyncio.timeout(LIMIT_SECONDS):
                    printed, complaint = await _talk(process, request)
            except BaseException:
                # With all that it started: what holds its outputs open may have outlived it.
                await end(process, group=True)
                raise
            failed = process.returncode != 0
        except OSError as error:
            # Of these only TimeoutError has no number.
            reason = error.strerror or f"no answer within {LIMIT_SECONDS:g} s"
            raise PluginFailed(f"{what}: {reason}") from None
        finally:
            self._metrics.ran(self._provider.name, self._clock.monotonic() - began, failed=failed)
        if failed:
            said = complaint.decode(errors="replace").strip()[:_LONGEST_COMPLAINT]
            said = said.replace(question.token, "***") if question.token else said
            raise PluginFailed(f"{what}: {_ending(process.returncode or 0)}: {said}")
        if len(printed) > _LONGEST_ANSWER:
            raise PluginFailed(f"{what}: the answer is longer than {_LONGEST_ANSWER} bytes")
        return printed

    async def _start(self) -> Process:
        own = {variable.name: variable.value for variable in self._provider.env}
        return await asyncio.create_subprocess_exec(
            self._path,
            *self._provider.args,
            env={**self._environment(), **own},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )


async def _talk(process: Process, request: bytes) -> tuple[bytes, bytes]:
    """Both outputs, each up to one byte more than its limit."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    async with asyncio.TaskGroup() as group:
        group.create_task(_feed(process.stdin, request))
        printed = group.create_task(read_bounded(process.stdout, _LONGEST_ANSWER + 1))
        complaint = group.create_task(read_bounded(process.stderr, 4 * _LONGEST_COMPLAINT))
    await process.wait()
    return printed.result(), complaint.result()


async def _feed(pipe: asyncio.StreamWriter, request: bytes) -> None:
    # A plugin need not read what it does not care for.
    with suppress(BrokenPipeError, ConnectionResetError):
        pipe.write(request)
        await pipe.drain()
        pipe.close()
        await pipe.wait_closed()


def _ending(code: int) -> str:
    return f"exit status {code}" if code > 0 else f"signal: {signal.strsignal(-code)}"
