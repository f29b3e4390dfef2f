"""The agent with a wall clock that jumps: `python -m tests.fakes.jumping_clock FILE ARGUMENTS...`.

FILE holds by how many seconds; there is no jump while it is not there. Only this process sees it: the machine's clock
belongs to everyone.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from glasslet.concurrency.clock import SystemClock
from glasslet.kubelet import main


def jump_by(file: Path) -> None:
    """From now on the agent's clock is off by what the file says."""

    def now(_: SystemClock) -> datetime:
        text = file.read_text() if file.exists() else "0"
        return datetime.now(UTC) + timedelta(seconds=float(text or 0))

    SystemClock.now = now  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    jump_by(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
