"""Hostile manifests: never an exception, one finding each, and the healthy pod beside them stays.

Two hundred come from valid ones by seeded mutations that surely break them, the rest is written by hand.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from glasslet.config.documents import load_file
from glasslet.sources.manifest_files import ManifestFiles
from tests.builders.manifests import READER, manifest, text_of, write

EVERYTHING = Path(__file__).parents[2] / "data/manifests/everything.yaml"
SEEDS = range(200)
RUBBISH: tuple[Any, ...] = (
    [], {}, "", -1, 2**70, 1.5, True, "\u0000", "x" * 300, ["x"], {"a": {"b": []}}, "../..", "٣", float(10**300),
)  # fmt: skip


def mutated(seed: int) -> str:
    """A valid manifest with some of its values replaced by rubbish, the containers always among them."""
    source = random.Random(seed)
    value = load_file(str(EVERYTHING))[0].value if seed % 2 else manifest(f"pod-{seed}")
    for _ in range(source.randint(0, 4)):
        holder, key = source.choice(list(places(value)))
        holder[key] = copy.deepcopy(source.choice(RUBBISH))
    if isinstance(value["spec"], dict):
        value["spec"]["containers"] = copy.deepcopy(source.choice(RUBBISH))
    return json.dumps(value) if seed % 3 else cut(text_of(value), source)


def cut(text: str, source: random.Random) -> str:
    """Some text missing, some inserted: mostly no YAML any more."""
    at = source.randrange(len(text))
    inserted = source.choice(["{", "}", ":", "- ", "\t", "&a *a", "!!python/object", "?", "|", "%"])
    return f"{text[:at]}{inserted}\n{text[at + 9 :]}"


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, held in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(held, dict | list):
            yield from places(held)


def deep(folder: Path) -> None:
    (folder / "bad.yaml").write_text("[" * 50_000)


def deep_json(folder: Path) -> None:
    (folder / "bad.json").write_text('{"a":' * 50_000 + "1" + "}" * 50_000)


def cyclic(folder: Path) -> None:
    (folder / "bad.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: &m {name: a, labels: *m}\n")


def bomb(folder: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (folder / "bad.yaml").write_text("\n".join(lines))


def too_large(folder: Path) -> None:
    (folder / "bad.yaml").write_bytes(b"a: " + b"x" * (10 * 1024 * 1024))


def large_binary(folder: Path) -> None:
    (folder / "bad.yaml").write_bytes(bytes(9 * 1024 * 1024))


def binary(folder: Path) -> None:
    (folder / "bad.yaml").write_bytes(bytes(range(256)))


def not_utf8(folder: Path) -> None:
    (folder / "bad.yaml").write_bytes(text_of(manifest()).replace("web", "w\u00e9b").encode("latin-1"))


def repeated_keys(folder: Path) -> None:
    (folder / "bad.yaml").write_text("kind: Pod\nkind: Pod\napiVersion: v1\n")


def not_a_number(folder: Path) -> None:
    (folder / "bad.yaml").write_text(text_of(manifest()) + "priority: .nan\n")


def infinite_json(folder: Path) -> None:
    (folder / "bad.json").write_text(json.dumps(manifest()).replace('"busybox:1.36"', "Infinity"))


def fifo(folder: Path) -> None:
    os.mkfifo(folder / "bad.yaml")


def link_loop(folder: Path) -> None:
    (folder / "bad.yaml").symlink_to(folder / "bad.yaml")


def dangling(folder: Path) -> None:
    (folder / "bad.yaml").symlink_to(folder / "nowhere")


def link_to_device(folder: Path) -> None:
    (folder / "bad.yaml").symlink_to("/dev/zero")


def link_to_endless_file(folder: Path) -> None:
    (folder / "bad.yaml").symlink_to("/dev/full")


def object_tag(folder: Path) -> None:
    (folder / "bad.yaml").write_text("!!python/object/apply:os.system ['true']")


def other_kind(folder: Path) -> None:
    (folder / "bad.yaml").write_text("apiVersion: apps/v1\nkind: Deployment\n")


def thousand_containers(folder: Path) -> None:
    write(folder, file="bad.yaml", containers=[{"name": "same", "image": "a"}] * 1000)


def megabyte_name(folder: Path) -> None:
    value = manifest()
    value["metadata"]["name"] = "x" * 1_000_000
    (folder / "bad.json").write_text(json.dumps(value))


HAND_WRITTEN = (
    deep, deep_json, cyclic, bomb, too_large, large_binary, binary, not_utf8, repeated_keys, not_a_number,
    infinite_json, fifo, link_loop, dangling, link_to_device, link_to_endless_file, object_tag, other_kind,
    thousand_containers, megabyte_name,
)  # fmt: skip


def look(folder: Path) -> tuple[list[str], list[str]]:
    """The pods and findings of a folder, read twice: nothing may be reported twice."""
    files = ManifestFiles(paths=(str(folder),), reader=READER)
    files.check_all()
    files.check_all()
    return [pod.metadata.name for pod in files.pods() or []], list(files.findings())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mutated_manifest_is_one_finding(seed: int, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(mutated(seed), encoding="utf-8", errors="surrogatepass")
    write(tmp_path, "good")
    pods, findings = look(tmp_path)
    assert pods == ["good-node-1"]
    assert len(findings) == 1
    assert len(findings[0]) < 5_000


@pytest.mark.parametrize("make", HAND_WRITTEN, ids=lambda make: make.__name__)
def test_a_hostile_file_is_one_finding(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path)
    write(tmp_path, "good")
    pods, findings = look(tmp_path)
    assert pods == ["good-node-1"]
    assert len(findings) == 1
    assert findings[0].startswith(f"{tmp_path}/bad.")
