"""Reads the record of an agent that does not run: `python -m glasslet.glass ROOT_DIR trace|why|node [POD]`.

Writes the answer as JSON. Where there is none: exit code 1 and an `ErrorAnswer`.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from glasslet.answers.wire import ErrorAnswer, encode
from glasslet.glass.offline import answer_offline


def main(arguments: list[str]) -> int:
    """Answers one question; returns the exit code."""
    root_dir, question, typed = arguments
    answer = answer_offline(Path(root_dir), question, typed, datetime.now(UTC))
    sys.stdout.buffer.write(encode(answer))
    return 1 if isinstance(answer, ErrorAnswer) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
