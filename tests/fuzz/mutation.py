"""Damaged and strange inputs made from good ones: of bytes, of trees (JSON, YAML), of protobuf messages."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

MOST_BYTES = 1 << 16
"""No mutated input is longer."""

NUMBERS = (
    b"0",
    b"-1",
    b"1",
    b"255",
    b"65536",
    b"2147483648",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551616",
    b"1e308",
    b"1e999",
    b"1e-400",
    b"NaN",
    b"-0",
    b"0.5",
    b"1" * 30,
    b"9" * 5000,
    b"007",
    b"1_000",
)
PIECES = (
    b"\x00",
    b"\xff",
    b"\x80",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
    b"\x85",
    b"\x0b",
    b"\x0c",
    b"\r",
    b"\n",
    b"\r\n\r\n",
    b"\t",
    b" ",
    b"\\",
    b'"',
    b"'",
    b"%",
    b"%00",
    b"%2e%2e/",
    b"../",
    b"{",
    b"}",
    b"[",
    b"]",
    b",:",
    b"=",
    b";",
    b"#",
    b"&",
    b"*",
    b"-",
    b"$(A)",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b'""',
    b"\xef\xbb\xbf",
    b"\\u0000",
    b"\\ud800",
    b"[" * 2000,
    b'{"a":' * 1200,
    b"(" * 100,
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**30,
    0.5,
    -0.0,
    1e308,
    "",
    " ",
    "0",
    "-1",
    "1e63",
    "1e-63",
    "9" * 200,
    "1Ki",
    "1e999",
    "a",
    "A" * 300,
    "\x00",
    "\n",
    "\r",
    "\u2028",
    "\x85",
    "é",
    "😀",
    "../..",
    "/",
    "//",
    "a/b",
    "a" * 64,
    "a..b",
    "-a",
    "::1",
    "[",
    "%",
    "$(A)$(A)",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999-23:59",
    "0001-01-01T00:00:00+23:59",
    "1970-01-01",
    [],
    {},
    [None],
    [[]],
    {"": None},
    [0] * 50,
    {"a": {"b": {"c": []}}},
)


def mutated(data: bytes, dice: Random, others: Sequence[bytes], words: Sequence[bytes] = ()) -> bytes:
    """One to four damages. `others`: more good inputs, to take pieces from; `words`: of the format."""
    made = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 2, 3, 4))):
        _BYTE_DAMAGES[dice.randrange(len(_BYTE_DAMAGES))](made, dice, others, words)
    return bytes(made[:MOST_BYTES])


def _place(made: bytearray, dice: Random) -> int:
    return dice.randrange(len(made) + 1)


def _flip(made: bytearray, dice: Random, _others: Sequence[bytes], _words: Sequence[bytes]) -> None:
    if made:
        made[dice.randrange(len(made))] ^= 1 << dice.randrange(8)


def _set(made: bytearray, dice: Random, _others: Sequence[bytes], _words: Sequence[bytes]) -> None:
    if made:
        made[dice.randrange(len(made))] = dice.choice((0, 1, 0x0A, 0x20, 0x7F, 0x80, 0xFE, 0xFF, dice.randrange(256)))


def _cut(made: bytearray, dice: Random, _others: Sequence[bytes], _words: Sequence[bytes]) -> None:
    at = _place(made, dice)
    del made[at : at + dice.choice((1, 1, 2, 4, 8, 32, 1 << 16))]


def _insert(made: bytearray, dice: Random, _others: Sequence[bytes], words: Sequence[bytes]) -> None:
    at = _place(made, dice)
    pool = words if words and dice.random() < 0.5 else PIECES
    made[at:at] = dice.choice(pool)


def _number(made: bytearray, dice: Random, _others: Sequence[bytes], _words: Sequence[bytes]) -> None:
    """Another number in the place of one."""
    start = at = _place(made, dice)
    while at < len(made) and not 48 <= made[at] <= 57:
        at += 1
    if at == len(made):
        made[start:start] = dice.choice(NUMBERS)
        return
    end = at
    while end < len(made) and 48 <= made[end] <= 57:
        end += 1
    made[at:end] = dice.choice(NUMBERS)


def _repeat(made: bytearray, dice: Random, _others: Sequence[bytes], _words: Sequence[bytes]) -> None:
    at = _place(made, dice)
    piece = made[at : at + dice.choice((1, 2, 5, 20, 100))]
    made[at:at] = piece * dice.choice((1, 1, 2, 10, 200))


def _splice(made: bytearray, dice: Random, others: Sequence[bytes], _words: Sequence[bytes]) -> None:
    other = dice.choice(others)
    start = dice.randrange(len(other) + 1)
    at = _place(made, dice)
    made[at : at + dice.choice((0, 10, 1 << 16))] = other[start : start + dice.choice((5, 50, 1 << 16))]


def _swap(made: bytearray, dice: Random, _others: Sequence[bytes], _words: Sequence[bytes]) -> None:
    """A block of big-endian length in the place of some bytes."""
    at = _place(made, dice)
    size = dice.choice((1, 2, 3, 4, 8))
    made[at : at + size] = dice.choice((0, 1, 0x7F, 0xFFFF, (1 << 31) - 1, (1 << 63) - 1)).to_bytes(8, "big")[
        8 - size :
    ]


_BYTE_DAMAGES: tuple[Callable[[bytearray, Random, Sequence[bytes], Sequence[bytes]], None], ...] = (
    _flip,
    _set,
    _cut,
    _insert,
    _insert,
    _number,
    _number,
    _repeat,
    _splice,
    _swap,
)


def mutated_tree(seed: Any, dice: Random) -> Any:
    """A copy of the tree in which some values are others, some keys are missing, and some are doubled."""
    tree = copy.deepcopy(seed)
    for _ in range(dice.choice((1, 1, 2, 3))):
        tree = _damaged_tree(tree, dice)
    return tree


def _damaged_tree(tree: Any, dice: Random) -> Any:
    holder: Any = None
    key: Any = None
    node = tree
    for _ in range(dice.randrange(9)):
        if isinstance(node, dict) and node:
            holder, key = node, dice.choice(list(node))
        elif isinstance(node, list) and node:
            holder, key = node, dice.randrange(len(node))
        else:
            break
        node = holder[key]
    if holder is None:
        return dice.choice(VALUES) if dice.random() < 0.1 else tree
    match dice.randrange(8):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[dice.choice(("", "x", "A" * 64, "a.b/c", "é", str(key) + "s"))] = node
        case 1:
            holder += [copy.deepcopy(node)] * dice.choice((1, 2, 50))
        case 2 if isinstance(node, str):
            holder[key] = mutated(node.encode(), dice, [b"abc-1"]).decode("utf-8", "replace")[:2000]
        case 3 if isinstance(node, int) and not isinstance(node, bool):
            holder[key] = node + dice.choice((-1, 1, 10**9, 10**12, 2**62, -(2**62)))
        case 4:
            holder[key] = [node]
        case 5:
            holder[key] = {dice.choice(("a", "name", "value", "key")): node}
        case _:
            holder[key] = copy.deepcopy(dice.choice(VALUES))
    return tree


def as_json(tree: Any) -> bytes:
    """The tree as a client writes it: never a surrogate alone."""
    return json.dumps(tree, ensure_ascii=False).encode("utf-8", "replace")


_SAMPLES: dict[int, tuple[Any, ...]] = {
    FieldDescriptor.TYPE_INT32: (0, 1, -1, 2**31 - 1, -(2**31)),
    FieldDescriptor.TYPE_INT64: (0, 1, -1, 2**63 - 1, -(2**63), 10**18),
    FieldDescriptor.TYPE_UINT32: (0, 1, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 1, 2**63, 2**64 - 1),
    FieldDescriptor.TYPE_DOUBLE: (0.0, -1.0, 1e308, float("inf"), float("nan")),
    FieldDescriptor.TYPE_FLOAT: (0.0, -1.0, float("inf"), float("nan")),
    FieldDescriptor.TYPE_BOOL: (True, False),
    FieldDescriptor.TYPE_STRING: (
        "",
        "a",
        "io.kubernetes.pod.name",
        "{",
        '{"sandboxID":"x"}',
        "0",
        "-1",
        "9" * 5000,
        "a/b:c@sha256:0",
        "\x00",
        "é",
        "x" * 3000,
    ),
    FieldDescriptor.TYPE_BYTES: (b"", b"\x00", b"\xff" * 40, b"\x08\x96\x01"),
}


def filled(message: Message, dice: Random, depth: int = 0) -> Message:
    """Fields of the message set to values of their types that nobody expects."""
    for field in message.DESCRIPTOR.fields:
        if dice.random() < 0.4 and depth:
            continue
        _fill(message, field, dice, depth)
    return message


def _fill(message: Message, field: Any, dice: Random, depth: int) -> None:
    holder: Any = getattr(message, field.name)
    repeated = field.is_repeated
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        if entry.fields_by_name["value"].message_type is None:
            for _ in range(dice.randrange(3)):
                key = _sample(entry.fields_by_name["key"], dice)
                holder[key] = _sample(entry.fields_by_name["value"], dice)
    elif entry is not None and depth < 4:
        for _ in range(dice.randrange(3) if repeated else 1):
            inside = holder.add() if repeated else holder
            if not repeated:
                inside.SetInParent()
            filled(inside, dice, depth + 1)
    elif entry is None:
        if repeated:
            holder.extend(_sample(field, dice) for _ in range(dice.randrange(3)))
        else:
            setattr(message, field.name, _sample(field, dice))


def _sample(field: Any, dice: Random) -> Any:
    if field.enum_type is not None:
        return dice.choice((0, 1, 2, 99))
    return dice.choice(_SAMPLES[field.type])
