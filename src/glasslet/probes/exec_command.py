"""exec probes: a command in the container that exits with 0."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.api.lifecycle import ExecAction
from glasslet.api.object import ContainerID
from glasslet.config.duration import Duration
from glasslet.podspec.expansion import TooLong, expand_all
from glasslet.probes.answer import READ_BYTES, ProbeAnswer, Unprobeable
from glasslet.probes.results import ProbeVerdict
from glasslet.runtime.errors import ExecTimeout, RuntimeCallError, RuntimeTimeout, rpc_words
from glasslet.runtime.protocols import RuntimeService


def probe_command(action: ExecAction, container: Container) -> tuple[str, ...]:
    """The command, `$(NAME)` replaced with what the manifest itself says: a variable whose value comes from elsewhere
    is empty here, one that is not in `env` stays as written. Raises Unprobeable."""
    try:
        return expand_all(action.command, {entry.name: entry.value for entry in container.env})
    except TooLong as error:
        raise Unprobeable(f"command{error}") from None


async def probe_exec(
    runtime: RuntimeService, instance: ContainerID, command: tuple[str, ...], *, timeout: float, timeout_fails: bool
) -> ProbeAnswer:
    """Runs the command; the runtime ends it after `timeout` seconds, which fails or is an error."""
    try:
        result = await runtime.exec_sync(instance, command, timeout)
    except (ExecTimeout, RuntimeTimeout):
        output = f'command timed out: "{" ".join(command)}" timed out after {go_seconds(timeout)}'
        if not timeout_fails:
            return ProbeAnswer(verdict=ProbeVerdict.UNKNOWN, error=output)
        return ProbeAnswer(verdict=ProbeVerdict.FAILURE, output=output, brief=f"not done within {go_seconds(timeout)}")
    except RuntimeCallError as error:
        return ProbeAnswer(verdict=ProbeVerdict.UNKNOWN, error=rpc_words(error))
    output = result.text(READ_BYTES)
    verdict = ProbeVerdict.SUCCESS if result.exit_code == 0 else ProbeVerdict.FAILURE
    return ProbeAnswer(verdict=verdict, output=output, brief=f"exit code {result.exit_code}")


def go_seconds(seconds: float) -> str:
    """`1s`, `1m30s`: as Go prints a duration."""
    return str(Duration.of_nanoseconds(round(seconds * 10**9)))
