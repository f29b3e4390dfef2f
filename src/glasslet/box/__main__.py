"""`python -m glasslet.box`: the controllers of one state folder.

python -m glasslet.box run STATE SOCKET      works until TERM
python -m glasslet.box plan STATE FILE...    says what these files would change, and changes nothing
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path


async def _run(state: Path, socket: Path) -> None:
    from glasslet.box.controller import run

    task = asyncio.create_task(run(state, socket))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def main() -> int:
    """The exit code: 1 if a document is broken."""
    match sys.argv[1:]:
        case ["run", state, socket]:
            asyncio.run(_run(Path(state), Path(socket)))
            return 0
        case ["plan", state, *files]:
            from glasslet.box.preview import preview

            return preview(Path(state), files)
    sys.stderr.write(f"{__doc__}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
