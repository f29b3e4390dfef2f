"""The part of a run that is in the node's own namespaces: `python -m tests.conformance.inside FOLDER`."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conformance import proxy, suite
from tests.conformance.isolation import furnish
from tests.conformance.node import running_node
from tests.conformance.options import Options
from tests.conformance.report import summary
from tests.fakes import csi_sidecars
from tests.fakes.containerd import REPOSITORY
from tests.fakes.control_plane import BINARY


def main(folder: Path) -> int:
    """0 when every test passed, 1 when not, 2 when the suite could not run."""
    options = Options.read(folder / "options.json")
    results = Path(options.out) if options.out else folder / "results"
    results.mkdir(parents=True, exist_ok=True)
    furnish(folder / "places", (folder, results, *_programs(), *(Path(image).parent for image in options.images)))
    try:
        with (
            _way_out(folder, wanted=not options.images) as environment,
            running_node(folder, options, suite.sandbox_image(), environment) as node,
        ):
            found = suite.run(node, options, results)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        found = None
    finally:
        for log in (folder / "kubelet.log", folder / "ctd" / "containerd.log", *(folder / "storage").glob("*.log")):
            if options.out and log.exists():
                shutil.copy(log, results)
    if not found:
        print("no test has such a name" if found is not None else "the suite did not run to its end", file=sys.stderr)
        return 2
    print(summary(found), flush=True)
    return 1 if any(row.outcome == "FAIL" for row in found) else 0


def _programs() -> tuple[Path, ...]:
    """Where the programs of a run are."""
    return (
        REPOSITORY,
        Path(sys.prefix),
        Path(sys.base_prefix),
        suite.PROGRAMS,
        BINARY.parent,
        csi_sidecars.folder_of_programs(),
    )


@contextlib.contextmanager
def _way_out(folder: Path, *, wanted: bool) -> Iterator[dict[str, str]]:
    """The environment with which containerd finds registries."""
    if not wanted:
        yield {}
        return
    with proxy.in_thread(proxy.listen(folder / "proxy.sock")) as (_, address):
        yield {"HTTPS_PROXY": address, "HTTP_PROXY": address, "NO_PROXY": "127.0.0.1,localhost"}


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
