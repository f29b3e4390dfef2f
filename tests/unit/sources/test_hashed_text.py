"""Static pods have the UIDs that the Go kubelet gives them. `sums.json` is what tests/go/static-pods printed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.codec import convert, to_plain
from glasslet.api.defaults.pod import default_pod
from glasslet.api.pod import Pod
from glasslet.config.document import Document
from glasslet.config.documents import load_documents
from glasslet.sources.hashed_quantity import NotKnown, quantity_text
from glasslet.sources.hashed_text import hashed_text
from glasslet.sources.names import FILE
from glasslet.sources.static import Origin
from tests.builders.manifests import READER, manifest

FOLDER = Path(__file__).resolve().parents[2] / "data" / "static_pods"
SUMS: dict[str, dict[str, str]] = json.loads((FOLDER / "sums.json").read_text())


def _document(name: str, origin: str = "") -> Document:
    return load_documents((FOLDER / name).read_bytes(), origin=origin)[0]


def _text(written: dict[str, Any]) -> str | None:
    without_status = {key: value for key, value in written.items() if key != "status"}
    return hashed_text(to_plain(default_pod(convert(without_status, Pod))), written)


@pytest.mark.parametrize("name", SUMS["texts"])
def test_the_text_is_the_go_kubelets(name: str) -> None:
    text = _text(_document(name).value)
    assert text is not None
    assert hashlib.md5(text.encode()).hexdigest() == SUMS["texts"][name]


@pytest.mark.parametrize("path", SUMS["uids"])
def test_the_uid_is_the_go_kubelets(path: str) -> None:
    # behaviours.md §13: "UID if absent: MD5 hex (32 digits)"
    pod = READER.pod(_document(Path(path).name, origin=path), Origin(FILE, path))
    assert isinstance(pod, Pod), pod
    assert pod.metadata.uid == SUMS["uids"][path]


@pytest.mark.parametrize(
    "more",
    [
        {"status": {"phase": "Running"}},
        {"metadata": {"name": "web", "creationTimestamp": "2026-01-02T03:04:05Z"}},
        {"metadata": {"name": "web", "managedFields": [{"manager": "hand"}]}},
    ],
)
def test_no_text_is_claimed_where_go_prints_what_is_not_known_here(more: dict[str, Any]) -> None:
    assert _text(manifest()) is not None
    assert _text(manifest() | more) is None


@pytest.mark.parametrize(
    "written", [None, True, [], "much", "100Ei", "0.00000000000Gi", "1e999999999", 1e30, float("inf"), "1" * 5000]
)
def test_a_quantity_whose_text_is_not_known_is_not_claimed(written: Any) -> None:
    with pytest.raises(NotKnown):
        quantity_text(written, to_milli=True)


def test_empty_and_absent_lists_have_different_texts() -> None:
    assert _text(manifest(volumes=[])) != _text(manifest())
