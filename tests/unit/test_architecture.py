"""docs/architecture.md shows every room, and every path on it exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "glasslet"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
VALUE = "class _(Struct, frozen=True, kw_only=True):"
CGROUP_FILE = re.compile(
    r"/sys/fs/cgroup|\b(cgroup|cpu|cpuacct|cpuset|memory|pids|io|blkio|hugetlb|freezer)\."
    r"(procs|controllers|subtree_control|stat|max|min|low|high|weight|shares|cfs_\w+|current|peak|events|pressure|usage\w*"
    r"|limit_in_bytes|cpus\w*|mems|swap\.\w+|memsw\.\w+|oom\w*|state)\b"
)
LISTED = re.findall(r"`([\w./-]+)`", PAGE)


def rooms() -> set[str]:
    """All packages below `glasslet`, as the page names them."""
    folders = (path.parent.relative_to(SOURCES) for path in SOURCES.rglob("__init__.py"))
    return {f"{folder}/" for folder in folders if folder.parts and not folder.name.startswith("_")}


def test_each_room_has_a_line_that_says_what_it_holds() -> None:
    rows = [line for line in PAGE.split("## Rooms")[1].split("\n## ")[0].split("\n") if line.startswith("| `")]
    described = {room for row in rows for room in re.findall(r"`([\w/]+/)`", row.split(" | ")[0])}
    assert rooms() - described == set()
    assert all(len(row.split(" | ")[1].strip(" |")) > 10 for row in rows)


def test_each_path_on_the_page_exists() -> None:
    paths = {name for name in LISTED if name.endswith((".py", "/")) or name.startswith("contrib/")}
    assert len(paths) > 60
    assert sorted(name for name in paths if not ((SOURCES / name).exists() or (ROOT / name).exists())) == []


def test_each_owner_of_a_fact_is_a_class_or_function_of_its_room() -> None:
    owners = re.findall(r"`((?:[a-z_]+\.)+\w+)`", PAGE.split("## Who owns which fact")[1].split("\n## ")[0])
    assert len(owners) > 10
    for owner in owners:
        room, _, name = owner.rpartition(".")
        place = SOURCES / room.replace(".", "/")
        files = [place.with_suffix(".py")] if place.with_suffix(".py").exists() else list(place.glob("*.py"))
        assert any(re.search(rf"^(class|def) {name}\b", file.read_text(), re.MULTILINE) for file in files), owner


def test_assembly_builds_and_does_not_work() -> None:
    # Its classes are values: what works is built from a room's own classes.
    for path in (SOURCES / "assembly").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                head = ast.unparse(ast.ClassDef("_", node.bases, node.keywords, [ast.Pass()], node.decorator_list))
                assert head.splitlines()[0] == VALUE, f"{path.name}: {node.name}"


def test_nothing_is_set_on_a_part_after_its_construction() -> None:
    for path in (SOURCES / "daemon.py", *(SOURCES / "assembly").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            assert not any(isinstance(target, ast.Attribute) for target in targets), f"{path.name}: {ast.unparse(node)}"


def test_only_the_room_of_cgroups_opens_their_files() -> None:
    # The others ask it for typed values. `config`, which stands below it, only looks which version there is; keys of
    # limits that the runtime sets are no files that the agent opens.
    named_elsewhere = {"config/loading.py", "config/machine.py", "podspec/resources.py"}
    found = set()
    for path in SOURCES.rglob("*.py"):
        room = str(path.relative_to(SOURCES))
        if room.startswith("host/cgroups/") or "_generated" in room:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text())))
        documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        texts = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in documentation)
        if any(isinstance(node.value, str) and CGROUP_FILE.search(node.value) for node in texts):
            found.add(room)
    assert found == named_elsewhere


def test_each_public_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for path in SOURCES.rglob("*.py"):
        if "_generated" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(str(path.relative_to(SOURCES)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
