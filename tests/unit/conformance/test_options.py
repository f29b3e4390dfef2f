"""What a run of the suite is asked to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.options import FILTER, parse


def test_without_arguments_the_conformance_tests_run_and_images_are_pulled() -> None:
    options = parse([])
    assert (options.label_filter, options.images, options.focus) == (FILTER, (), ())


def test_images_are_the_archives_of_a_folder(tmp_path: Path) -> None:
    for name in ("b.tar", "a.tar", "notes.txt"):
        (tmp_path / name).touch()
    assert parse(["--images", str(tmp_path)]).images == (str(tmp_path / "a.tar"), str(tmp_path / "b.tar"))


def test_a_folder_without_archives_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--images", str(tmp_path)])
    assert f"--images {tmp_path}: no *.tar in that folder" in capsys.readouterr().err


def test_no_tests_at_once_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--procs", "0"])
    assert "--procs 0: at least 1" in capsys.readouterr().err


def test_options_come_through_a_file_as_they_are(tmp_path: Path) -> None:
    options = parse(["--focus", "Pods", "--focus", "Probing", "--skip", "GPU", "--procs", "3", "--timeout", "10m"])
    options.write(tmp_path / "options.json")
    assert type(options).read(tmp_path / "options.json") == options
