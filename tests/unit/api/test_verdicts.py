"""Validation gives the verdicts of upstream.

`verdicts.json` holds changes of `everything.yaml` (a field path and its new value) and what the v1.34.10 API machinery
says about the changed pod, defaulted, as a manifest. Values that are structures print differently and are cut there.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.codec import convert
from glasslet.api.defaults.pod import default_pod
from glasslet.api.pod import Pod
from glasslet.api.validation.pod import pod_errors
from glasslet.config.documents import load_file

DATA = Path(__file__).parents[2] / "data/manifests"
CASES = json.loads((DATA / "verdicts.json").read_text())
LONGEST = 480


@pytest.fixture(scope="module")
def everything() -> Any:
    return load_file(str(DATA / "everything.yaml"))[0].value


def case_name(case: dict[str, Any]) -> str:
    return "+".join(".".join(map(str, path)) for path, _ in case["set"])


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_verdict_is_that_of_upstream(case: dict[str, Any], everything: Any) -> None:
    manifest = copy.deepcopy(everything)
    for path, value in case["set"]:
        put(manifest, path, value)
    assert errors_of(manifest) == case["errors"]


def test_the_unchanged_manifest_is_valid(everything: Any) -> None:
    assert errors_of(everything) == []


def put(manifest: Any, path: list[str | int], value: Any) -> None:
    holder = manifest
    for step in path[:-1]:
        holder = holder[step]
    if value == "$delete":
        del holder[path[-1]]
    else:
        holder[path[-1]] = value


def errors_of(manifest: Any) -> list[str]:
    pod = default_pod(convert(manifest, Pod))
    if not pod.metadata.namespace:
        pod = replace(pod, metadata=replace(pod.metadata, namespace="default"))
    return sorted({comparable(str(error)) for error in pod_errors(pod)})


def comparable(text: str) -> str:
    structure = re.match(r"(.*?): Invalid value: [\[{]", text)
    if structure:
        return f"{structure[1]}: Invalid value"
    return ": ".join(text.split(": ")[:2]) if len(text) > LONGEST else text
