"""The `kubelet` command: what it prints and how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.config.files import STANDALONE, write

from glasslet import kubelet
from glasslet.config.loading import Loaded
from glasslet.version import KUBELET_VERSION


class FakeDaemon:
    """A composition root that only keeps the configurations that it was to run."""

    def __init__(self) -> None:
        self.runs: list[Loaded] = []

    def run(self, loaded: Loaded, serving_pair: object, watch: object) -> int:
        self.runs.append(loaded)
        return 0


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> FakeDaemon:
    fake = FakeDaemon()
    monkeypatch.setattr("glasslet.imports.load_agent", lambda: fake.run)
    monkeypatch.setattr("glasslet.host.process.set_own_title", lambda arguments: None)
    monkeypatch.setattr("glasslet.server.transport.serving_certificate.begin_serving_pair", lambda loaded: None)
    return fake


@pytest.fixture(autouse=True)
def swap_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine that runs the tests may have swap."""
    monkeypatch.setattr("glasslet.config.check.machine_problems", lambda loaded, machine=None: [])


def test_version_prints_exactly_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--version"], ["--version=true"], ["--v=2", "--version"]):
        assert kubelet.main(argv) == 0
        assert capsys.readouterr() == (f"Kubernetes {KUBELET_VERSION}\n", "")
    assert KUBELET_VERSION.startswith("v1.34.0+glasslet.")


def test_raw_version_prints_all_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubelet.main(["--version=raw"]) == 0
    out = capsys.readouterr().out
    assert out.startswith('version.Info{Major:"1", Minor:"34", GitVersion:"v1.34.0')
    assert out.count("\n") == 1


def test_version_and_help_import_nothing_heavy() -> None:
    script = (
        "import sys; from glasslet.kubelet import main; main(['--help']); main(['--version']);"
        "print([m for m in ('msgspec', 'yaml', 'asyncio', 'grpc', 'aiohttp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--help"], ["-h"], ["--max-pods=3", "--help"]):
        assert kubelet.main(argv) == 0
        out, err = capsys.readouterr()
        assert "--config-dir" in out
        assert err == ""


def test_a_good_command_line_runs_the_daemon_after_its_warnings(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubelet.main(["--max-pods=5", "--network-plugin=cni", "--version=v1.34.0-x"]) == 0
    (loaded,) = daemon.runs
    assert (loaded.configuration.max_pods, loaded.options.reported_version) == (5, "v1.34.0-x")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Flag --max-pods has been deprecated, ")
    assert lines[1].startswith("Flag --network-plugin was removed in v1.24")


def test_the_daemons_exit_code_is_the_commands(daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "run", lambda loaded, serving_pair, watch: 3)
    assert kubelet.main([]) == 3


def test_a_daemon_that_fails_ends_with_one_clear_line_and_code_1(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(loaded: object, serving_pair: object, watch: object) -> None:
        raise RuntimeError("no socket")

    monkeypatch.setattr(daemon, "run", fail)
    assert kubelet.main([]) == 1
    assert '"command failed" err="failed to run Kubelet: no socket"' in capsys.readouterr().err


def test_a_problem_ends_the_start_with_upstreams_words_and_code_1(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubelet.main(["--nonsense"]) == 1
    assert daemon.runs == []
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith('"command failed" err="failed to parse kubelet flag: unknown flag: --nonsense"\n')


def test_several_problems_are_listed_before_the_last_words(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubelet.main(["--max-pods=-1", "--port=0", "--authorization-mode=x"]) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("Flag ")]
    assert lines[0] == "3 problems:"
    assert lines[1:4] == [
        "  invalid configuration: maxPods (--max-pods) -1 must not be a negative number [flag --max-pods]",
        "  invalid configuration: port (--port) 0 must be between 1 and 65535, inclusive [flag --port]",
        "  authorization.mode: unknown authorization mode x [flag --authorization-mode]",
    ]
    assert "failed to validate kubelet configuration, error: [invalid configuration: maxPods" in lines[4]


def test_warnings_of_a_file_name_its_line(
    daemon: FakeDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE + "maxpods: 1\n")
    assert kubelet.main([f"--config={config}"]) == 0
    assert capsys.readouterr().err == f"file {config}:5: unknown field \"maxpods\", did you mean 'maxPods'?\n"


def test_check_tells_problems_and_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubelet.main(["check", "--", "--max-pods=-1"]) == 1
    assert "problem: invalid configuration: maxPods (--max-pods) -1" in capsys.readouterr().out
    assert kubelet.main(["check"]) == 0


def test_check_answers_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubelet.main(["check", "--effective", "-o", "json", "--", "--max-pods=7"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["problems"] == []
    assert {"path": "maxPods", "value": 7, "origin": "flag --max-pods"} in answer["effective"]
    assert kubelet.main(["check", "--json", "--max-pods=7"]) == 0
    assert "effective" not in json.loads(capsys.readouterr().out)


def test_check_refuses_an_unknown_output_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubelet.main(["check", "-o", "xml"]) == 2
    assert "want json or text" in capsys.readouterr().err


def test_check_replace_lists_differences_and_ends_with_1_if_something_must_be_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("glasslet.config.replacement.facts.running_kubelet", lambda root="/": None)
    root = tmp_path / "root"
    flags = ["--config", write(tmp_path / "config.yaml", STANDALONE), "--root-dir", str(root)]
    assert kubelet.main(["check", "--replace", "-o", "json", "--", *flags]) == 0
    assert "stop" not in {one["weight"] for one in json.loads(capsys.readouterr().out)["differences"]}
    (root / "pods" / "uid" / "volumes" / "vendor~driver").mkdir(parents=True)
    assert kubelet.main(["check", "--replace", "--", *flags]) == 1
    assert "1 pod with a volume of vendor/driver" in capsys.readouterr().out
