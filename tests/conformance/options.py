"""What is asked of a run: the command line of `scripts/conformance`, and its way into the namespaces."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FILTER = "(NodeConformance || Conformance) && !(Serial || Slow || Disruptive || Flaky)"


STORAGE_FILTER = "!(Serial || Slow || Disruptive || Flaky)"


@dataclass(frozen=True, kw_only=True)
class Options:
    """`focus` and `skip`: regular expressions on names, any of which may match. `images`: archives to import instead of
    pulling. `out`: a folder that keeps the logs and reports. `timeout`: of the whole suite, as Go writes it (`2h`).
    `storage`: the cluster's storage suite instead of the node suite; `kubelet`: a program instead of the agent."""

    label_filter: str = FILTER
    focus: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    procs: int = 4
    timeout: str = "2h"
    images: tuple[str, ...] = ()
    out: str = ""
    verbosity: int = 2
    storage: bool = False
    kubelet: str = ""

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(path: Path) -> Options:
        """What `write` wrote."""
        values: dict[str, Any] = json.loads(path.read_text())
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return Options(**fields)


def parse(arguments: Sequence[str]) -> Options:
    """Ends the process with words on what is wrong."""
    parser = argparse.ArgumentParser(
        prog="scripts/conformance",
        description="run Kubernetes' own node suite (v1.34) against the agent of this checkout; needs root",
    )
    parser.add_argument("--focus", action="append", default=[], metavar="REGEXP", help="only tests with such a name")
    parser.add_argument("--skip", action="append", default=[], metavar="REGEXP", help="no tests with such a name")
    parser.add_argument(
        "--label-filter", metavar="EXPR", help=f"Ginkgo's; default: {FILTER}; --storage: {STORAGE_FILTER}"
    )
    default_procs = 2 * (os.cpu_count() or 1)
    parser.add_argument("--storage", action="store_true", help="run the cluster suite's tests of a CSI driver instead")
    parser.add_argument("--kubelet", type=Path, metavar="PROGRAM", help="run it instead of the agent, to compare")
    parser.add_argument("--procs", type=int, default=default_procs, help="tests at once; default: %(default)s")
    parser.add_argument("--timeout", default="2h", help="for the whole suite; default: %(default)s")
    parser.add_argument("--images", type=Path, metavar="DIR", help="import DIR/*.tar instead of pulling images")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep reports and logs there")
    parser.add_argument("-v", "--verbosity", type=int, default=2, help="of the agent's log; default: %(default)s")
    given = parser.parse_args(arguments)
    if given.procs < 1:
        parser.error(f"--procs {given.procs}: at least 1")
    images: tuple[str, ...] = ()
    if given.images is not None:
        images = tuple(str(path.resolve()) for path in sorted(given.images.glob("*.tar")))
        if not images:
            parser.error(f"--images {given.images}: no *.tar in that folder")
    return Options(
        label_filter=given.label_filter or (STORAGE_FILTER if given.storage else FILTER),
        focus=tuple(given.focus),
        skip=tuple(given.skip),
        procs=given.procs,
        timeout=given.timeout,
        images=images,
        out=str(given.out.resolve()) if given.out else "",
        verbosity=given.verbosity,
        storage=given.storage,
        kubelet=str(given.kubelet.resolve()) if given.kubelet else "",
    )
