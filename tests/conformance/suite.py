"""Runs the suite's programs and tells how its tests end."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.conformance.node import Node
from tests.conformance.options import Options
from tests.conformance.report import Progress, Row, line_of, rows

VERSION = "v1.34.10"
SOURCES = Path(__file__).resolve().parent
PROGRAMS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glasslet" / f"conformance-{VERSION}"


def build(*, storage: bool) -> None:
    """Makes the programs where they are not there yet, or older than go.sum. Raises CalledProcessError."""
    newest = (SOURCES / "go.sum").stat().st_mtime
    for name in ("e2e_node", *(("e2e",) if storage else ())):
        suite = PROGRAMS / f"{name}.test"
        if not suite.exists() or suite.stat().st_mtime < newest:
            subprocess.run([str(SOURCES / "build"), str(PROGRAMS), name], check=True, stdout=subprocess.DEVNULL)


def sandbox_image() -> str:
    """The pause image by the name that the suite knows."""
    listed = subprocess.run(
        [str(PROGRAMS / "e2e_node.test"), "--list-images"], check=True, capture_output=True, text=True
    )
    return next(name for name in listed.stdout.split() if "/pause:" in name)


def run(node: Node, options: Options, results: Path) -> list[Row] | None:
    """Prints a line per test as it ends; all of them in the end, None when the suite ended without a report.
    `results` gets suite.log, ginkgo/report.json and junit_01.xml."""
    results.mkdir(parents=True, exist_ok=True)
    name = "e2e" if options.storage else "e2e_node"
    (node.work / f"{name}.test").symlink_to(PROGRAMS / f"{name}.test")
    own = _storage_arguments(node) if options.storage else _node_arguments(node)
    process = subprocess.Popen(
        [
            *(str(PROGRAMS / "ginkgo"), f"--procs={options.procs}", f"--timeout={options.timeout}"),
            *(f"--label-filter={options.label_filter}", "--no-color", "--keep-going", "-v"),
            *(f"--focus={one}" for one in options.focus or (("External.Storage",) if options.storage else ())),
            *(f"--skip={one}" for one in options.skip),
            *(f"./{name}.test", "--", *own, f"--report-dir={results}"),
            *("--report-complete-ginkgo", "--report-complete-junit"),
        ],
        cwd=node.work,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    progress = Progress()
    assert process.stdout is not None
    with process, (results / "suite.log").open("w") as log:
        for line in process.stdout:
            log.write(line)
            row = progress.read(line)
            if row is not None and row.name:
                print(line_of(row), flush=True)
    report = results / "ginkgo" / "report.json"
    return rows(json.loads(report.read_text())) if report.exists() else None


def _node_arguments(node: Node) -> tuple[str, ...]:
    return (
        *("--start-services=false", f"--host={node.server}", f"--bearer-token={node.token}"),
        *("--prepull-images=false", "--dns-domain=cluster.local"),
        *(f"--container-runtime-endpoint={node.endpoint}", f"--image-service-endpoint={node.endpoint}"),
        *(f"--k8s-bin-dir={PROGRAMS}", f"--config-dir={node.drop_ins}"),
    )


def _storage_arguments(node: Node) -> tuple[str, ...]:
    return (
        *(f"--kubeconfig={node.kubeconfig}", "--provider=skeleton", "--num-nodes=1", "--minStartupPods=0"),
        *("--dns-domain=cluster.local", f"--storage.testdriver={node.work / 'driver.yaml'}"),
    )
