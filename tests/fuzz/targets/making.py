"""Targets from good inputs: damaged bytes, damaged trees, strange messages."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from tests.fuzz.engine import Target
from tests.fuzz.mutation import as_json, filled, mutated, mutated_tree

T = TypeVar("T")
Errors = tuple[type[BaseException], ...]


def bytes_target(
    name: str,
    run: Callable[[bytes], object],
    seeds: Sequence[bytes],
    *,
    errors: Errors = (),
    words: Sequence[bytes] = (),
) -> Target:
    """Inputs are damaged bytes. `words`: of the format."""

    def make(dice: Random) -> bytes:
        return mutated(dice.choice(seeds), dice, seeds, words)

    return Target(name, make, run, errors, seeds)


def tree_target(name: str, run: Callable[[bytes], object], seeds: Sequence[Any], *, errors: Errors = ()) -> Target:
    """Inputs are JSON of damaged trees, and now and then damaged JSON."""
    texts = [as_json(seed) for seed in seeds]

    def make(dice: Random) -> bytes:
        if dice.random() < 0.2:
            return mutated(dice.choice(texts), dice, texts)
        return as_json(mutated_tree(dice.choice(seeds), dice))

    return Target(name, make, run, errors, texts)


def message_target(
    name: str, run: Callable[[Any], object], kind: type[Message], seed: Message, *, errors: Errors = ()
) -> Target:
    """Inputs are bytes of a protobuf message: strange values in all fields, or damaged bytes. What protobuf itself
    refuses is refused."""
    text = seed.SerializeToString()

    def make(dice: Random) -> bytes:
        if dice.random() < 0.3:
            return mutated(text, dice, [text])
        message = kind.FromString(text) if dice.random() < 0.5 else kind()
        return filled(message, dice, depth=1 if dice.random() < 0.5 else 0).SerializeToString()

    return Target(name, make, lambda data: run(kind.FromString(data)), (DecodeError, *errors), [text])


@cache
def scratch() -> Path:
    """A folder in memory for decoders that take a path; removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="glasslet-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def in_file(name: str, run: Callable[[str], T]) -> Callable[[bytes], T]:
    """A decoder of a file, as one of its bytes."""

    def decode(data: bytes) -> T:
        path = scratch() / name
        path.write_bytes(data)
        return run(str(path))

    return decode


def without_loop(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise AssertionError("it waits")


class Pieces:
    """A connection whose other side sends these bytes, in pieces of different sizes, and then ends."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._sizes = (1, 7, 100, 4096)
        self._turn = 0

    async def receive(self) -> bytes:
        """The next piece; empty at the end."""
        self._turn += 1
        size = self._sizes[self._turn % len(self._sizes)]
        piece, self._data = self._data[:size], self._data[size:]
        return piece

    async def send(self, data: bytes) -> None:
        """What is sent is not looked at."""
