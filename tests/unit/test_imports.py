"""How the agent's modules are loaded; each fact in a process that has loaded nothing yet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import glasslet


def told(program: str, **environment: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return done.stdout.strip()


def test_loading_the_agent_reads_no_certificate_authorities() -> None:
    program = """
from glasslet.imports import load_agent
load_agent()
from aiohttp import connector
print(connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509"])
"""
    assert told(program) == "0"


def test_loading_the_agent_leaves_the_environment_and_the_collector_as_they_were() -> None:
    program = """
import gc, os
from glasslet.imports import load_agent
load_agent()
print(os.environ["SSL_CERT_FILE"], "SSL_CERT_DIR" in os.environ, gc.isenabled(), gc.get_freeze_count() > 100_000)
"""
    os.environ.pop("SSL_CERT_DIR", None)
    assert told(program, SSL_CERT_FILE="/etc/ours.pem") == "/etc/ours.pem False True True"


ON_REQUEST = (
    *("tracemalloc", "glasslet.telemetry.profiles.memory", "glasslet.telemetry.profiles.sampling"),  # profiles
    *("glasslet.calls.instruments", "glasslet.calls.log", "glasslet.calls.package_source"),  # the calls of a pod
    *("glasslet.stops.stops", "glasslet.stops.evaluation", "glasslet.glass.stops.handlers"),  # breaks
    "glasslet.glass.inspection.tree",
    *("glasslet.glass.page.live", "glasslet.glass.page.live_views", "importlib.resources"),  # the page
    *("glasslet.host.systemd.bus", "glasslet.host.cgroups.slices", "glasslet.shutdown.manager", "dbus_fast"),
    *("glasslet.api.validation.pod", "glasslet.sources.manifest_problems"),  # static pods
    *("celpy", "debugpy", "opentelemetry", "difflib"),
)
"""What a node without such a request, driver or pod never needs."""


def test_loading_the_agent_loads_nothing_that_only_some_requests_or_nodes_need() -> None:
    program = f"""
import sys
from glasslet.imports import load_agent
load_agent()
print([name for name in {ON_REQUEST} if name in sys.modules])
"""
    assert told(program) == "[]"


def test_values_are_structs_but_for_those_that_help_loads() -> None:
    """A dataclass takes a millisecond and 13 kB when its module is loaded, a Struct a fiftieth of that."""
    root = Path(glasslet.__file__).parent
    found = {str(file.relative_to(root)) for file in root.rglob("*.py") if "\n@dataclass" in file.read_text()}
    assert found == {"config/problem.py", "config/flags/parsing.py"}
