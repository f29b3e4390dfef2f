"""`scripts/conformance`: builds what is needed, then runs the suite on a node in namespaces of its own."""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
from pathlib import Path

from tests.conformance import proxy, suite
from tests.conformance.isolation import Host, remove
from tests.conformance.options import Options, parse
from tests.fakes import containerd, control_plane, csi_sidecars


def main() -> int:
    """0 when every test passed, 1 when not, 2 when the suite could not run."""
    options = parse(sys.argv[1:])
    missing = containerd.missing_requirement() or control_plane.missing_requirement()
    if missing is not None:
        print(f"scripts/conformance: {missing}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    control_plane.build()
    suite.build(storage=options.storage)
    if options.storage:
        csi_sidecars.build()
    folder = Path(tempfile.mkdtemp(prefix="glc-"))
    try:
        return _run(folder, options)
    except KeyboardInterrupt:
        return 2
    finally:
        remove(folder)


def _run(folder: Path, options: Options) -> int:
    options.write(folder / "options.json")
    with contextlib.ExitStack() as stack:
        if not options.images:
            stack.enter_context(proxy.in_thread(proxy.serve(folder / "proxy.sock")))
        host = stack.enter_context(Host())
        inside = (sys.executable, "-m", "tests.conformance.inside", str(folder))
        return host.run(("env", f"TMPDIR={folder}", *inside))


if __name__ == "__main__":
    raise SystemExit(main())
