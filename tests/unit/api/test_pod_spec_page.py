"""No field of a pod's spec is silently ignored: each has a row, and the row is true."""

from __future__ import annotations

import importlib.util
from copy import deepcopy
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "pod_spec_page.py"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("glasslet_pod_spec_page", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pod_spec = load_script()


def test_every_field_has_a_row_that_is_true() -> None:
    assert pod_spec.problems(pod_spec.load_rows()) == []


def test_the_page_is_what_the_script_prints() -> None:
    printed = pod_spec.page(pod_spec.load_rows())
    assert pod_spec.PAGE.read_text() == printed, "run scripts/pod_spec_page.py > docs/pod-spec.md"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"by": "podspec/none.py", "test": "unit/podspec/test_dns.py::test_the_policy_chooses_the_base"}, "no module"),
        (
            {"by": "podspec/sandbox.py", "test": "unit/podspec/test_dns.py::test_the_policy_chooses_the_base"},
            "not read",
        ),
        ({"by": "podspec/dns.py", "test": "unit/podspec/test_dns.py::test_of_nothing"}, "no test"),
        ({"by": "podspec/dns.py"}, "exactly these keys"),
        (
            {"by": "podspec/dns.py", "test": "unit/podspec/test_dns.py::test_the_policy_chooses_the_base", "gate": "X"},
            "there is no feature gate X",
        ),
    ],
)
def test_a_row_that_is_not_true_is_found(row: dict[str, str], problem: str) -> None:
    rows = deepcopy(dict(pod_spec.load_rows()))
    rows["PodSpec"] = {**rows["PodSpec"], "dnsPolicy": row}
    [found] = [text for text in pod_spec.problems(rows) if text.startswith("PodSpec.dnsPolicy: ")]
    assert problem in found


def test_a_field_without_a_row_is_found() -> None:
    rows = deepcopy(dict(pod_spec.load_rows()))
    del rows["Probe"]["grpc"]
    assert "Probe.grpc: no row says what becomes of it" in pod_spec.problems(rows)


def test_a_type_that_is_as_a_field_has_all_its_fields_read_there() -> None:
    rows = deepcopy(dict(pod_spec.load_rows()))
    rows["ImageVolumeSource"] = {"*": {"as": "Volume.image"}}
    found = [text for text in pod_spec.problems(rows) if text.startswith("ImageVolumeSource.")]
    assert found == ["ImageVolumeSource.pullPolicy: volumes/types/image.py does not read pull_policy"]
