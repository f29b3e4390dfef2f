"""Drop-ins of --config-dir: `*.conf` files in walk order, merged as JSON merge patches (RFC 7386)."""

from __future__ import annotations

import os
from typing import Any

from glasslet.config.files import reason_of
from glasslet.config.problem import ConfigProblem, Step
from glasslet.config.schema import Tree

SUFFIX = ".conf"
MAX_FILES = 1000


def find_drop_ins(directory: str) -> tuple[list[str], list[ConfigProblem]]:
    """The drop-ins below a directory in upstream's order: by name within each directory, directories where their name
    sorts. A missing directory is a problem; links to directories are not followed."""
    found: list[str] = []
    problems: list[ConfigProblem] = []
    waiting = [directory]
    while waiting and len(found) <= MAX_FILES:
        path = waiting.pop()
        if path != directory and not (os.path.isdir(path) and not os.path.islink(path)):
            if path.endswith(SUFFIX):
                found.append(path)
            continue
        try:
            names = sorted(os.listdir(path), reverse=True)
        except (OSError, ValueError) as error:
            text = f'failed to walk through kubelet dropin directory "{directory}": {path}: {reason_of(error)}'
            problems.append(
                ConfigProblem(Step.MERGE, "--config-dir", text, path, "a readable directory", "flag --config-dir")
            )
            continue
        waiting.extend(os.path.join(path, name) for name in names)
    if len(found) > MAX_FILES:
        text = f"more than {MAX_FILES} files in {directory}"
        problems.append(ConfigProblem(Step.MERGE, "--config-dir", text, directory, "fewer files", "flag --config-dir"))
        found = found[:MAX_FILES]
    return found, problems


def merge_patch(base: Any, patch: Any) -> Any:
    """A JSON merge patch: maps merge by key, null removes a key, everything else replaces. Changes neither."""
    if not isinstance(patch, dict):
        return patch
    made = dict(base) if isinstance(base, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merge_patch(made.get(name), value)
    return made


def without_empty(tree: Tree) -> Tree:
    """The tree as upstream writes it out before the merge: without empty lists and maps."""
    made: Tree = {}
    for name, value in tree.items():
        kept = without_empty(value) if isinstance(value, dict) else value
        if kept not in ([], {}):
            made[name] = kept
    return made
