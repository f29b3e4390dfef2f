"""One configuration file, read and checked: the --config file or a drop-in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from glasslet.config.document import Document, DocumentError
from glasslet.config.documents import load_file
from glasslet.config.kubelet_configuration import API_VERSION, KIND
from glasslet.config.problem import ConfigProblem, Notice, OriginKind, SettingOrigin, Step
from glasslet.config.schema import Tree, check_types


class ConfigFile(Struct):
    """The content of a file. `tree` is None if no part can be used; nulls stay in drop-ins."""

    path: str
    tree: Tree | None = None
    notices: list[Notice] = field(default_factory=list)
    problems: list[ConfigProblem] = field(default_factory=list)
    origin_of: Callable[[tuple[str | int, ...]], SettingOrigin] = lambda _path: SettingOrigin(OriginKind.FILE)


def read_config_file(path: str, *, drop_in: bool) -> ConfigFile:
    """Reads a file of KubeletConfiguration. A mistake that upstream tolerates is a notice, any other a problem."""
    result = ConfigFile(path)
    step = Step.MERGE if drop_in else Step.LOAD
    try:
        documents = load_file(path, tolerate_duplicates=not drop_in)
    except DocumentError as error:
        place = f"{path}:{error.line}" if error.line else path
        result.problems.append(ConfigProblem(step, path, error.message, origin=place))
        return result
    if not documents:
        text = "the file is empty, want apiVersion, kind and fields"
        result.problems.append(ConfigProblem(step, path, text, origin=path))
        return result
    document = documents[0]
    if len(documents) > 1:
        result.notices.append(Notice("only the first document of the file is used", path, path))
    kind = OriginKind.DROP_IN if drop_in else OriginKind.FILE
    result.origin_of = lambda where: SettingOrigin(kind, f"{path}:{document.line_of(where)}")
    if _is_configuration(document, result, step):
        _check(document, result, step, drop_in)
    return result


def _is_configuration(document: Document, result: ConfigFile, step: Step) -> bool:
    if not isinstance(document.value, dict):
        text = "want a map of fields with apiVersion and kind"
        result.problems.append(ConfigProblem(step, result.path, text, origin=f"{result.path}:{document.line_of('')}"))
        return False
    wrong = 0
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        found: Any = document.value.get(name)
        if found == wanted:
            continue
        wrong += 1
        shown = repr(found[:100]) if isinstance(found, str) else "another type"
        text = f"{name} is missing, want {wanted}" if found is None else f"{name}: want {wanted}, got {shown}"
        origin = str(result.origin_of((name,)))
        result.problems.append(
            ConfigProblem(step, name, text, value=shown if found else "", allowed=wanted, origin=origin)
        )
    return not wrong


def _check(document: Document, result: ConfigFile, step: Step, drop_in: bool) -> None:
    fields = {name: value for name, value in document.value.items() if name not in ("apiVersion", "kind")}
    checked = check_types(fields, keep_nulls=drop_in)
    for path, line in document.duplicates:
        place = f"{result.path}:{line}"
        result.notices.append(Notice(f'key "{path}" is given twice, the last one counts', path, place))
    for unknown in checked.unknown:
        result.notices.append(Notice(unknown.message, str(unknown.path[-1]), str(result.origin_of(unknown.path))))
    for mismatch in checked.mismatches:
        result.problems.append(
            ConfigProblem(
                step, mismatch.field, mismatch.message, mismatch.found, mismatch.wanted,
                str(result.origin_of(mismatch.path)),
            )
        )  # fmt: skip
    result.tree = checked.tree
