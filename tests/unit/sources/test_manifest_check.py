"""`glasslet check FILE...`: all problems of all files."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.sources.manifest_check import ManifestReport, check_manifests

GOOD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: main
    image: busybox:1.36
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "web.yaml"


def checked(file: Path, text: str) -> ManifestReport:
    file.write_text(text)
    return check_manifests([str(file)], "here")


def test_a_good_manifest_is_ok(file: Path) -> None:
    assert checked(file, GOOD).as_text() == "ok: no problem in 1 file"


def test_all_problems_of_all_files_come_at_once_with_file_line_and_field(tmp_path: Path, file: Path) -> None:
    file.write_text(GOOD.replace("busybox:1.36", "Busybox").replace("spec:", "spec:\n  restartPolicy: Sometimes"))
    (tmp_path / "zzz.yaml").write_text(GOOD.replace("name: main", "nmae: main"))
    report = check_manifests([str(tmp_path)], "here")
    assert [(Path(it.file).name, it.line, it.field) for it in report.problems] == [
        ("web.yaml", 6, "spec.restartPolicy"),
        ("web.yaml", 9, "spec.containers[0].image"),
        ("zzz.yaml", 7, "spec.containers[0].nmae"),
        ("zzz.yaml", 7, "spec.containers[0].name"),
    ]
    assert report.as_text().endswith("4 problems in 2 files")
    assert 'supported values: "Always", "OnFailure", "Never"' in report.as_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty, want a Pod"),
        ("kind: [", ":"),
        ("- a\n", "this is not a Kubernetes object"),
        (GOOD.replace("kind: Pod", "kind: Deployment"), 'kind "Deployment" of apiVersion "v1" cannot run here'),
        (f"{GOOD}---\n{GOOD.replace('web', 'two')}", "only the first document of a manifest file is read"),
        (GOOD.replace("  name: web", "  name: web\n  name: web"), "metadata.name: given more than once"),
        (GOOD.replace("spec:", "spec:\n  serviceAccountName: robot"), "static pods may not reference"),
    ],
    ids=["empty", "no YAML", "a list", "a Deployment", "two documents", "a repeated key", "an API object"],
)
def test_a_file_that_is_no_manifest_has_one_problem(file: Path, text: str, said: str) -> None:
    (problem,) = checked(file, text).problems
    assert said in str(problem)


def test_two_pods_of_one_name_are_a_problem_of_the_second_file(tmp_path: Path, file: Path) -> None:
    file.write_text(GOOD)
    (tmp_path / "again.yaml").write_text(GOOD)
    (problem,) = check_manifests([str(file), str(tmp_path / "again.yaml")], "here").problems
    assert problem.file == str(tmp_path / "again.yaml")
    assert f"also in {file}:4" in problem.message


def test_a_file_that_does_not_exist_hides_no_other(tmp_path: Path, file: Path) -> None:
    file.write_text(GOOD.replace("name: web", "name: Web"))
    report = check_manifests([str(tmp_path / "none.yaml"), str(file)], "here")
    assert [Path(problem.file).name for problem in report.problems] == ["none.yaml", "web.yaml"]


def test_a_folder_without_manifests_is_a_problem(tmp_path: Path) -> None:
    (problem,) = check_manifests([str(tmp_path)], "here").problems
    assert "allowed: files ending in .yaml" in problem.message


def test_control_characters_of_a_manifest_never_reach_the_terminal(file: Path) -> None:
    assert "\x1b" not in checked(file, GOOD.replace("name: web", 'name: "\\e[31m"')).as_text()
