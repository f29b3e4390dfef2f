"""The process that evaluates conditions: `python -P -m glasslet.stops.cel_process`. Lines of JSON in and out.

    {"check": CONDITION, "names": [...]}     {} | {"error": ..., "line": 1, "column": 11}
    {"when": CONDITION, "tree": {...}}       {"value": true} | {"error": ...}

It may be killed at any moment, and ends with the agent.
"""

from __future__ import annotations

import ctypes
import json
import resource
import signal
import sys
from collections.abc import Collection
from typing import Any

import celpy
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError, base_functions
from lark import Token, Tree

MEMORY = 1 << 30
"""Bytes of address space."""
_PROGRAMS = 128
_MACROS = frozenset(("all", "exists", "exists_one", "map", "filter", "reduce", "min"))
_TYPES = frozenset(("bool", "bytes", "double", "duration", "int", "list", "map", "null_type", "string", "uint", "type"))
_FUNCTIONS = _MACROS | {"has", "dyn"} | {str(name) for name in base_functions}
_PR_SET_PDEATHSIG = 1


class Mistake(Exception):
    """A wrong expression. `place`: the token at fault."""

    def __init__(self, message: str, place: Token | None) -> None:
        super().__init__(message)
        self.place = place


def answer(request: dict[str, Any], programs: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request."""
    environment = celpy.Environment()
    if "check" in request:
        try:
            check(environment.compile(request["check"]), set(request["names"]))
        except CELParseError as error:
            return {"error": "it ends or continues wrongly here", "line": error.line or 0, "column": error.column or 0}
        except Mistake as mistake:
            place = mistake.place
            line, column = (place.line, place.column) if place is not None else (0, 0)
            return {"error": str(mistake), "line": line or 0, "column": column or 0}
        return {}
    condition = request["when"]
    if condition not in programs:
        if len(programs) >= _PROGRAMS:
            programs.clear()
        programs[condition] = environment.program(environment.compile(condition))
    try:
        value = programs[condition].evaluate({key: json_to_cel(one) for key, one in request["tree"].items()})
    except CELEvalError as error:
        return {"error": _reason(error)}
    if not isinstance(value, bool | celpy.celtypes.BoolType):
        return {"error": f"the condition gives {type(value).__name__.removesuffix('Type').lower()}, not a boolean"}
    return {"value": bool(value)}


def _reason(error: CELEvalError) -> str:
    """The library's reason in short. It gives the kind of an error second."""
    said, *more = error.args or (str(error),)
    if more and more[0] is IndexError:
        return "a list has no element of that index"
    return str(said).partition(" (in activation")[0][:300]


def check(tree: Tree[Token], names: Collection[str]) -> None:
    """Raises Mistake for a name or function that conditions do not have."""
    if tree.data in ("ident", "dot_ident"):
        name = tree.children[0]
        assert isinstance(name, Token)
        if name not in names and name not in _TYPES:
            raise Mistake(f"there is no field {name} at the top; there are {', '.join(sorted(names))}", name)
        return
    children = list(tree.children)
    if tree.data in ("ident_arg", "member_dot_arg"):
        at = 0 if tree.data == "ident_arg" else 1
        function = children[at]
        assert isinstance(function, Token)
        if function not in _FUNCTIONS:
            raise Mistake(f"there is no function {function}", function)
        if function in _MACROS and tree.data == "member_dot_arg" and (variable := _variable(children[-1])) is not None:
            _check_all(children[:1], names)
            _check_all(children[2:], {*names, variable})
            return
    _check_all(children, names)


def _check_all(children: Collection[Any], names: Collection[str]) -> None:
    for child in children:
        if isinstance(child, Tree):
            check(child, names)


def _variable(arguments: Any) -> str | None:
    """The name that a macro gives to each element: its first argument."""
    at: Any = arguments.children[0] if isinstance(arguments, Tree) and arguments.children else None
    while isinstance(at, Tree) and at.data != "ident" and len(at.children) == 1:
        at = at.children[0]
    return str(at.children[0]) if isinstance(at, Tree) and at.data == "ident" else None


def main() -> None:
    """Answers until the input ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    programs: dict[str, Any] = {}
    for line in sys.stdin:
        try:
            said = answer(json.loads(line), programs)
        except MemoryError:
            said = {"error": "the condition needs too much memory"}
        except RecursionError:
            said = {"error": "the condition is nested too deeply"}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"[:300]}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
