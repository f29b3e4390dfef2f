"""`glasslet web`: the page of the agent on this machine, for one person."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from threading import Thread

import click

from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.failure import AgentNotRunning, Failure

port_option = click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1. Default: a free one."
)
no_browser_option = click.option("--no-browser", is_flag=True, help="Print the address and open nothing.")


@click.command("web")
@port_option
@no_browser_option
@click.pass_obj
def command(place: AgentPlace, port: int, no_browser: bool) -> None:
    """Serve the agent's page on 127.0.0.1 until Ctrl+C, and open it in a browser if there is one.

    The address has a token that works once. From another machine: ssh -L PORT:127.0.0.1:PORT NODE, with --port PORT.
    """
    client = find_agent(place)
    if not client.answers():
        raise AgentNotRunning(str(client.socket), "nothing listens there")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(client.socket, port, browser=not no_browser and has_display()))


async def serve(socket: Path, port: int, *, browser: bool, below: str = "") -> None:
    """Serves the page until the process is to end. `below`: as in PageServer. Raises Failure."""
    from glasslet.cli.page_server import PageServer

    server = PageServer(socket, below=below)
    try:
        await server.start(port)
    except OSError as error:
        await server.stop()
        raise Failure(f"--port {port}: {error.strerror or error}") from error
    try:
        click.echo(f"{server.address}\nCtrl+C ends it.")
        if browser:
            import webbrowser

            # A browser may take long to start, and the page is served meanwhile.
            Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
        await _stopped()
    finally:
        await server.stop()


async def _stopped() -> None:
    """Returns when the process is to end."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()


def has_display() -> bool:
    """Whether a browser can be opened: one in a terminal would take the terminal."""
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
