#!/usr/bin/env python3
"""Prints docs/pod-spec.md: what becomes of each field of a pod's spec, from the typed objects and docs/pod-spec.toml.

Usage: scripts/pod_spec_page.py [--check]    (with the package importable; --check prints the problems of the rows only)

Fields come from `glasslet.api`, so that a new one has no row until one is written. A row that says
"implemented" names a module that reads the field and a test that exists.
"""

from __future__ import annotations

import re
import sys
import tomllib
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import FieldInfo, fields

from glasslet.api.object import Object
from glasslet.api.pod import PodSpec
from glasslet.config.gate_table import GATES

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "docs" / "pod-spec.toml"
PAGE = ROOT / "docs" / "pod-spec.md"
SOURCE = ROOT / "src" / "glasslet"
TESTS = ROOT / "tests"

ALL = "*"
ANSWERS = {
    "implemented": {"by", "test"},
    "gated": {"by", "test", "gate"},
    "partial": {"by", "test", "planned"},
    "refused": {"refused", "by", "test"},
    "planned": {"planned"},
    "other": {"other"},
    "as": {"as"},
}
"""Kinds of rows by the keys that they have."""

HEADER = """\
# Every field of a pod's spec

What becomes of each field on a node that glasslet runs. Made by `scripts/pod_spec_page.py` out of the types in
`glasslet.api` and the rows in `pod-spec.toml`; a test fails when a field has no row, when a row names a module that
does not read the field or a test that does not exist, and when this page is out of date.

- **yes**: implemented by the module, shown by the test (one of several, as a rule).
- **gate**: the same, where the feature gate is on.
- **in part**: what is missing is named.
- **refused**: the pod or container is refused with a reason that says so.
- **planned**: not yet.
- **not here**: another component's matter.

Static pods are validated as the API server validates, so that values without sense are refused before any of this.
"""


class Row(NamedTuple):
    """What is said of one field."""

    kind: str
    text: Mapping[str, str]


Rows = Mapping[str, Mapping[str, Mapping[str, str]]]


def load_rows() -> Rows:
    """The rows as written, by type and field."""
    return typing.cast(Rows, tomllib.loads(ROWS.read_text()))


def types_of_a_spec() -> dict[str, type[Object]]:
    """All types below PodSpec by name, in the order in which they are met."""
    found: dict[str, type[Object]] = {}

    def visit(one: type[Object]) -> None:
        if one.__name__ not in found:
            found[one.__name__] = one
            for field in fields(one):
                for inner in _objects_in(field.type):
                    visit(inner)

    visit(PodSpec)
    return found


def _objects_in(kind: Any) -> Iterator[type[Object]]:
    if isinstance(kind, type) and issubclass(kind, Object):
        yield kind
    for argument in typing.get_args(kind):
        yield from _objects_in(argument)


def kind_of(row: Mapping[str, str]) -> str | None:
    """Which kind of row it is; None for one with the wrong keys."""
    return next((kind for kind, keys in ANSWERS.items() if set(row) == keys), None)


def find_row(rows: Rows, type_: str, field: str) -> Mapping[str, str] | None:
    """The row of a field, its own or that of its whole type, wherever `as` leads. None where there is none."""
    of_type = rows.get(type_, {})
    row = of_type.get(field, of_type.get(ALL))
    if row is None or "as" not in row:
        return row
    other, _, named = row["as"].partition(".")
    return find_row(rows, other, named or field)


def problems(rows: Rows) -> list[str]:
    """All that is wrong with the rows, one line each."""
    types = types_of_a_spec()
    found = [f"{name}: no such type in a pod's spec" for name in rows if name not in types]
    for name, type_ in types.items():
        of_type = {field.encode_name: field for field in fields(type_)}
        extra = rows.get(name, {}).keys() - of_type.keys() - {ALL}
        found += [f"{name}.{field}: no such field" for field in sorted(extra)]
        for wire, field in of_type.items():
            row = find_row(rows, name, wire)
            if row is None:
                found.append(f"{name}.{wire}: no row says what becomes of it")
            else:
                of_this = rows.get(name, {})
                # A whole type that is as a field elsewhere is read by that field's module, each field of it.
                own = of_this.get(wire) is row or "." in of_this.get(ALL, {}).get("as", "")
                found += [f"{name}.{wire}: {problem}" for problem in _row_problems(row, field if own else None)]
    return found


def _row_problems(row: Mapping[str, str], field: FieldInfo | None) -> Iterator[str]:
    kind = kind_of(row)
    if kind is None:
        yield f"a row may not have exactly these keys: {', '.join(sorted(row))}"
        return
    if "by" in row:
        module = SOURCE / row["by"]
        if not module.is_file():
            yield f"there is no module {row['by']}"
        elif kind != "refused" and field is not None and not re.search(rf"\.{field.name}\b", module.read_text()):
            yield f"{row['by']} does not read {field.name}"
    if "test" in row:
        file, _, test = row["test"].partition("::")
        path = TESTS / file
        if not path.is_file() or not re.search(rf"^\s*(async )?def {test}\(", path.read_text(), re.MULTILINE):
            yield f"there is no test {row['test']}"
    if row.get("gate", next(iter(GATES))) not in GATES:
        yield f"there is no feature gate {row['gate']}"


def page(rows: Rows) -> str:
    """The whole page."""
    parts = [HEADER]
    for name, type_ in types_of_a_spec().items():
        of_type = rows.get(name, {})
        only = of_type.get(ALL)
        if only is not None and len(of_type) == 1:
            parts.append(f"\n## {name}\n{_whole(only)}\n")
            continue
        lines = [f"\n## {name}\n| field | here | how |\n| --- | --- | --- |\n"]
        lines += [f"| `{field.encode_name}` | {_cells(of_type, field.encode_name)} |\n" for field in fields(type_)]
        parts.append("".join(lines))
    return "".join(parts)


def _cells(of_type: Mapping[str, Mapping[str, str]], field: str) -> str:
    row = of_type.get(field)
    if row is None:
        row = {"as": f"{of_type[ALL]['as']}.{field}"} if "as" in of_type[ALL] else of_type[ALL]
    shown = f"`{row.get('by', '')}`, `{row.get('test', '').rpartition('::')[2]}`"
    match kind_of(row):
        case "implemented":
            return f"yes | {shown}"
        case "gated":
            return f"gate `{row['gate']}` | {shown}"
        case "partial":
            return f"in part | {shown}; not yet: {row['planned']}"
        case "refused":
            return f"refused | {row['refused']} ({shown})"
        case "planned":
            return f"planned | {row['planned']}"
        case "other":
            return f"not here | {row['other']}"
        case _:
            return f"as `{row['as']}` | "


def _whole(row: Mapping[str, str]) -> str:
    if "as" in row:
        return f"All fields: as `{row['as']}`."
    return f"Planned: {row['planned']}." if "planned" in row else f"Not here: {row.get('other', '')}."


def main() -> int:
    """Prints the page, or only what is wrong with the rows."""
    rows = load_rows()
    wrong = problems(rows)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    if "--check" not in sys.argv[1:]:
        print(page(rows), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
