"""`glasslet calls`: shows the agent's own functions as they ran for one pod, or during the agent's start."""

from __future__ import annotations

import re
import time

import click

from glasslet.answers.calls import CallsAnswer, CallsRequest
from glasslet.cli.agent_client import AgentClient, AgentPlace, PodName, find_agent, pod_path
from glasslet.cli.calls.export import as_otlp, as_perfetto, send
from glasslet.cli.calls.tree import drawn
from glasslet.cli.failure import Failure
from glasslet.cli.options import namespace_option, optional_pod_argument
from glasslet.cli.output import output_option, show
from glasslet.cli.target import in_namespace, living_pod

ENDS = ("Ready", "step")
_UNTIL_SECONDS = 300.0
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|min)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, None: 1.0}
_POLL = 20.0


class Length(click.ParamType[float]):
    """A length of time: 30s, 2m, 500ms; a number alone means seconds."""

    name = "length"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        found = _SECONDS.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no length of time; allowed: 30s, 2m, 500ms", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


@click.command("calls")
@optional_pod_argument
@namespace_option
@click.option("--for", "seconds", type=Length(), metavar="TIME", help="Trace for this long. Default: 30s.")
@click.option(
    "--until",
    type=click.Choice(ENDS),
    metavar="|".join(ENDS),
    help="Trace until the pod is Ready, or leaves the next station of its way; 5 minutes at most.",
)
@click.option("--last", is_flag=True, help="Show the last trace of this pod once more; trace nothing.")
@click.option("--start", "of_start", is_flag=True, help="The agent's own start instead of a pod.")
@click.option("--all", "everything", is_flag=True, help="Short calls, too.")
@click.option("--perfetto", metavar="FILE", default="", help="Write a file for ui.perfetto.dev instead.")
@click.option(
    "--otlp",
    metavar="FILE|URL",
    default="",
    help="Write OpenTelemetry spans (OTLP, JSON) to a file, or send them to a collector (http://127.0.0.1:4318).",
)
@output_option
@click.pass_obj
def command(
    place: AgentPlace,
    pod: str,
    namespace: str,
    seconds: float | None,
    until: str | None,
    last: bool,
    of_start: bool,
    everything: bool,
    perfetto: str,
    otlp: str,
    form: str,
) -> None:
    """Show the agent's own functions as they ran for one pod: arguments, result, CPU, and what each awaited.

    POD is a name, namespace/name, or the beginning of one; namespace/name may also name a pod that does not exist yet.
    Ctrl-C ends the trace and shows it. Other pods run at full speed. With --start the agent's own start is shown, in
    order, also long after it.
    """
    if bool(pod) == of_start:
        raise click.UsageError("name one POD, or use --start")
    if (of_start or last) and (seconds is not None or until):
        raise click.UsageError("--for and --until are for a new trace")
    client = find_agent(place)
    if of_start:
        answer = client.get("/agent/calls", CallsAnswer)
    else:
        target = _target(client, in_namespace(pod, namespace))
        path = pod_path(target.namespace, target.name, "/calls")
        if last:
            answer = client.get(path, CallsAnswer)
        else:
            longest = seconds if seconds is not None else _UNTIL_SECONDS if until else 30.0
            answer = _traced(client, path, CallsRequest(seconds=longest, until=until or ""))
    if perfetto:
        send(as_perfetto(answer), perfetto)
    if otlp:
        send(as_otlp(answer), otlp)
    if not perfetto and not otlp:
        show(answer, form, lambda: drawn(answer, everything=everything))


def _target(client: AgentClient, typed: str) -> PodName:
    """The pod; one that is named in full need not exist yet."""
    try:
        return living_pod(client, typed)
    except Failure:
        namespace, slash, name = typed.rpartition("/")
        if not slash or not name:
            raise
        click.echo(f"there is no pod {typed} yet: its calls are traced when it comes", err=True)
        return PodName(namespace, name)


def _traced(client: AgentClient, path: str, request: CallsRequest) -> CallsAnswer:
    answer = client.post(path, request, CallsAnswer)
    until = time.monotonic() + request.seconds + _POLL
    try:
        while answer.active and time.monotonic() < until:
            answer = client.get(path, CallsAnswer, wait=f"{_POLL:g}")
    except KeyboardInterrupt:
        answer = client.delete(path, CallsAnswer)
    return answer
