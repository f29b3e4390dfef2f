"""`glasslet debug`: stepping through one pod's way in a conversation."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import click

from glasslet.answers.pods import PodDescription
from glasslet.answers.stops import BreakRequest, BreakRow
from glasslet.answers.trace import TraceAnswer
from glasslet.answers.why import VerdictAnswer
from glasslet.cli.agent_client import AgentClient, AgentPlace, PodName, find_agent, pod_path
from glasslet.cli.failure import Failure
from glasslet.cli.options import namespace_option, pod_argument
from glasslet.cli.output import YAML, width, write
from glasslet.cli.stops.continue_command import let_go
from glasslet.cli.stops.holds_text import break_line, hold_line, released_text, step_text
from glasslet.cli.stops.inspect_command import inspected, part_of, write_part
from glasslet.cli.stops.step_command import stepped
from glasslet.cli.target import in_namespace, living_pod
from glasslet.cli.trace_command import drawn
from glasslet.cli.why_command import verdict_text

HELP = """\
s, step                to the next place of its way; an empty line steps again
c, continue            go on to the next break
i, inspect [PATH]      all that is known of the pod, or one part: i .plan.actions[0]
w, why                 why it is as it is
t, trace               its start, millisecond by millisecond
b, break PLACE [after] hold this pod there
q, quit                leave; a pod that is held stays held until its time is over"""


@click.command("debug")
@pod_argument
@namespace_option
@click.pass_obj
def command(place: AgentPlace, pod: str, namespace: str) -> None:
    """Step through one pod's way in a conversation: s(tep), c(ontinue), i(nspect), w(hy), t(race), b(reak), q(uit).

    POD is a name, namespace/name, or the beginning of one.
    """
    client = find_agent(place)
    Conversation(client, living_pod(client, in_namespace(pod, namespace))).run()


class Conversation:
    """One pod's conversation on the terminal, or over a pipe."""

    def __init__(self, client: AgentClient, pod: PodName) -> None:
        self._client = client
        self._pod = pod
        self._last = ""
        self._verbs: dict[str, Callable[[list[str]], None]] = {
            "step": self._step,
            "continue": self._continue,
            "inspect": self._inspect,
            "why": self._why,
            "trace": self._trace,
            "break": self._break,
            "help": lambda _: write(HELP),
        }

    def run(self) -> None:
        """Until `quit` or the end of the input."""
        self._where()
        while (line := self._line()) is not None:
            try:
                words = shlex.split(line) or shlex.split(self._last)
            except ValueError as error:
                write(f"error: {error}")
                continue
            if not words:
                continue
            if "quit".startswith(words[0]):
                return
            verb = next((name for name in self._verbs if name.startswith(words[0])), "help")
            self._last = line if line.strip() else self._last
            try:
                self._verbs[verb](words[1:])
            except Failure as failure:
                write(f"error: {failure.message}")

    def _line(self) -> str | None:
        if sys.stdin.isatty():
            try:
                return input("(glasslet) ")
            except (EOFError, KeyboardInterrupt):
                write("")
                return None
        line = sys.stdin.readline()
        return line.strip() if line else None

    def _where(self) -> None:
        row = self._client.get(pod_path(*self._pod), PodDescription).pod
        if row.hold is not None:
            write(hold_line(str(self._pod), row.hold, datetime.now(UTC)))
        else:
            write(f"{self._pod} is not held ({row.now or row.phase}); b PLACE holds it, h lists the commands")

    def _step(self, _words: list[str]) -> None:
        write(step_text(stepped(self._client, self._pod), datetime.now(UTC)))

    def _continue(self, _words: list[str]) -> None:
        write(released_text(let_go(self._client, self._pod), nothing=f"{self._pod} is not held"))

    def _inspect(self, words: list[str]) -> None:
        write_part(part_of(inspected(self._client, self._pod).tree, words[0] if words else ""), YAML)

    def _why(self, _words: list[str]) -> None:
        write(verdict_text(self._client.get(pod_path(*self._pod, "/why"), VerdictAnswer)))

    def _trace(self, _words: list[str]) -> None:
        write(drawn(self._client.get(pod_path(*self._pod, "/trace"), TraceAnswer), columns=width()))

    def _break(self, words: list[str]) -> None:
        if not words or words[1:] not in ([], ["after"]):
            raise Failure("b PLACE, or b PLACE after")
        wanted = BreakRequest(at=words[0], after=len(words) > 1, pod=str(self._pod))
        write(break_line(self._client.post("/breaks", wanted, BreakRow)))
