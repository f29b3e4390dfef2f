"""What files of documents hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from glasslet.answers.box import SourceFile
from glasslet.box.documents import all_of, objects_of
from glasslet.box.sources import SourceReader
from tests.unit.box.world import Machine, text_of, workload


def named(kind: str, name: object = "one", **fields: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def test_objects_of_several_documents_and_lists_are_found_with_their_lines() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [named("Pod", "b"), named("ConfigMap", "c")]}
    found = objects_of(text_of(named("Secret", "a"), listed), "shop.yaml")
    assert [str(one) for one in found.objects] == ["Secret default/a", "Pod default/b", "ConfigMap default/c"]
    assert [one.place for one in found.objects] == ["shop.yaml:1", "shop.yaml:8", "shop.yaml:12"]


@pytest.mark.parametrize(
    ("document", "said", "broken"),
    [
        (named("Deploymnet"), "kind: Deploymnet: there is no such kind; did you mean Deployment?", True),
        (named("deployment"), "did you mean Deployment?", True),
        (named("Ingress"), "Ingress one is left out: nothing here routes HTTP by host name", False),
        (named("Widget"), "Widget one is left out: nothing on one machine acts on it", False),
        (named("Pod", None), "Pod: metadata.name: Required value", True),
        (named("Pod", "../x"), 'Pod: metadata.name: Invalid value: "../x"', True),
        (
            {"kind": "Pod", "metadata": {"name": "a", "namespace": "a/b"}},
            "Pod a: metadata.namespace: Invalid value",
            True,
        ),
        ({"metadata": {"name": "a"}}, "kind: missing; allowed: Pod, Deployment", True),
        ("text", "want an object with apiVersion, kind and metadata", True),
    ],
)
def test_a_document_that_nothing_runs_is_one_finding(document: object, said: str, broken: bool) -> None:
    found = objects_of(text_of(document), "shop.yaml")
    assert found.objects == ()
    (finding,) = found.findings
    assert said in finding.text
    assert finding.broken is broken


@pytest.mark.parametrize("data", [b"a: [", b"\0", b"\xff\xfe", b"&a [*a, *a]: 1", b"{" * 5000])
def test_no_bytes_raise(data: bytes) -> None:
    found = objects_of(data, "shop.yaml")
    assert found.objects == ()
    assert found.findings[0].broken


def test_of_an_object_that_is_written_twice_the_last_counts_and_the_first_is_named() -> None:
    first, second = objects_of(text_of(named("Pod")), "a.yaml"), objects_of(text_of(named("Pod")), "b.yaml")
    found = all_of([first, second])
    assert [one.place for one in found.objects] == ["b.yaml:1"]
    assert str(found.findings[0]) == "a.yaml:1: Pod default/one is written again at b.yaml:1, and that counts"


def test_a_secret_that_cannot_be_decoded_is_named_without_its_value() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "data": {"password": "n0t base64!"}}
    step = Machine(secret).look()
    assert step.findings[0].broken
    assert "n0t" not in str(step.findings[0])
    assert step.objects == {}


def test_string_data_of_a_secret_is_data() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"password": "word"}}
    assert Machine(secret).look().objects["api/v1/namespaces/default/secrets/db"]["data"] == {"password": "d29yZA=="}


def spoil(file: Path) -> None:
    file.write_text("kind: [")


@pytest.mark.parametrize("harm", [spoil, Path.unlink], ids=["broken", "gone"])
def test_a_file_that_becomes_unusable_keeps_what_it_said(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    file = tmp_path / "shop.yaml"
    file.write_bytes(text_of(workload("Deployment")))
    source = SourceFile(place="shop.yaml", file=str(file))
    assert len(SourceReader(tmp_path).read([source])[0].objects) == 1
    harm(file)
    for reader in (SourceReader(tmp_path),) * 2:
        (found,) = reader.read([source])
        assert len(found.objects) == 1
        assert found.findings[0].broken
        assert "goes on until it is mended" in found.findings[-1].text


def test_a_file_that_is_not_named_any_more_leaves_no_copy(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_bytes(text_of(workload("Deployment")))
    reader = SourceReader(tmp_path)
    reader.read([SourceFile(place="shop", file=str(file))])
    assert len(list(tmp_path.glob("*.copy"))) == 1
    reader.read([])
    assert list(tmp_path.glob("*.copy")) == []
