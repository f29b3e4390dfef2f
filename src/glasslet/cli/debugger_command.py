"""`glasslet debugger`: lets a debugger attach to the running agent."""

from __future__ import annotations

import click

from glasslet.answers.debugger import DebuggerAnswer, DebuggerRequest
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.calls.calls_command import Length
from glasslet.cli.output import output_option, show


@click.command("debugger")
@click.option("--listen", metavar="ADDRESS", default="127.0.0.1:5678", show_default=True, help="Loopback and a port.")
@click.option("--for", "seconds", type=Length(), metavar="TIME", default="30m", show_default=True, help="At most 30m.")
@output_option
@click.pass_obj
def command(place: AgentPlace, listen: str, seconds: float, form: str) -> None:
    """Let VS Code or PyCharm attach to the running agent (debugpy).

    While a debugger has stopped all threads, a small process renews the node's lease and says in the node's Ready
    condition that the agent is being debugged. At the end of the time it ends the session, and the agent goes on.
    """
    answer = find_agent(place).post("/debugger", DebuggerRequest(listen=listen, seconds=seconds), DebuggerAnswer)
    show(answer, form, lambda: _text(answer))


def _text(answer: DebuggerAnswer) -> str:
    lease = f"; the lease {answer.lease} is kept meanwhile" if answer.lease else ""
    until = f"{answer.until.astimezone():%H:%M:%S}"
    return f"debugpy listens on {answer.listen} in process {answer.pid} until {until}{lease}"
