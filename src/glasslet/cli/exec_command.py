"""`glasslet exec`: runs a command in a container."""

from __future__ import annotations

import sys

import click

from glasslet.answers.requests import ExecAnswer, ExecRequest
from glasslet.cli.agent_client import AgentClient, AgentPlace, PodName, find_agent, pod_path
from glasslet.cli.options import container_option, namespace_option, pod_argument
from glasslet.cli.target import in_namespace, living_pod


@click.command("exec", context_settings={"ignore_unknown_options": False})
@click.option("-i", "--stdin", is_flag=True, help="Pass standard input to the command.")
@click.option("-t", "--tty", is_flag=True, help="Give the command a terminal.")
@container_option
@namespace_option
@pod_argument
@click.argument("words", metavar="-- COMMAND [ARG]...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def command(
    place: AgentPlace, pod: str, words: tuple[str, ...], namespace: str, container: str, stdin: bool, tty: bool
) -> None:
    """Run a command in a container. Exits with the command's exit code.

    POD is a name, namespace/name, or the beginning of one.
    """
    client = find_agent(place)
    target = living_pod(client, in_namespace(pod, namespace))
    request = ExecRequest(command=words, container=container, stdin=stdin, tty=tty)
    sys.exit(run(client, target, request))


def run(client: AgentClient, target: PodName, request: ExecRequest) -> int:
    """One session; the command's exit code. Raises Failure."""
    import asyncio

    from glasslet.cli.streams.protocol import Streams
    from glasslet.cli.streams.session import carry
    from glasslet.cli.streams.spdy import open_spdy
    from glasslet.cli.streams.websocket import open_websocket

    session = client.post(pod_path(target.namespace, target.name, "/exec"), request, ExecAnswer)

    async def go() -> int:
        streams: Streams
        if request.stdin and not request.tty:
            streams = await open_spdy(session.url, stdin=True, tty=False)
        else:
            streams = await open_websocket(session.url)
        return await carry(streams, stdin=request.stdin, tty=request.tty)

    try:
        return asyncio.run(go())
    except KeyboardInterrupt:
        return 130
