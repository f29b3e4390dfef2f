"""docs/pictures/trace.svg is what `glasslet trace` prints on a terminal.

GLASSLET_PICTURES=1 pytest tests/unit/cli/test_trace_picture.py       writes it
"""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from glasslet.cli.trace_command import drawn
from glasslet.glass.trace.waterfall import waterfall
from tests.builders.record import BASE, accepted, ready, record, station, waited

PICTURE = Path(__file__).parents[3] / "docs" / "pictures" / "trace.svg"
COLUMNS = 118
A_START = (
    station("seen", 0.0, 0.002, detail="API watch, add"),
    station("planned", 0.002, 0.003),
    station("cgroup", 0.003, 0.008),
    station("volumes", 0.008, 0.031, detail="2 projected"),
    waited("api_call", "GET configmap web-config", 0.009, 0.017, "volumes"),
    station("sandbox", 0.032, 0.291),
    waited("cri_call", "RunPodSandbox", 0.033, 0.284, "sandbox"),
    station("image", 0.293, 0.361, "main", detail="shop/web:3.8"),
    waited("queue", "ml/trainer:2.4", 0.294, 0.336, "image", "main"),
    station("created", 0.362, 0.390, "main"),
    waited("cri_call", "CreateContainer", 0.363, 0.379, "created", "main"),
    station("started", 0.390, 0.448, "main"),
    waited("cri_call", "StartContainer", 0.391, 0.444, "started", "main"),
    waited("probe", "readiness http :8080/ready", 0.449, 0.503, "probes", "main"),
    station("status", 0.504, 0.541, detail="2 patches"),
    waited("api_call", "PATCH status", 0.506, 0.540, "status"),
    ready(0.503),
    accepted(0.541),
)


@pytest.fixture(autouse=True)
def universal_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_the_picture_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasslet.cli.output.on_terminal", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = drawn(waterfall(record(*A_START), now=BASE + 10), columns=COLUMNS)
    widest = max(len(line.plain) for line in Text.from_ansi(text).split())
    console = Console(record=True, width=widest + 1, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text.from_ansi(text), soft_wrap=True)
    # Without rich's fonts, which it would load from another host.
    template = re.sub(r"@font-face \{\{.*?\}\}\s*|<!--.*?-->", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    picture = console.export_svg(title="glasslet trace web", code_format=template, unique_id="trace")
    assert "RunPodSandbox" in picture
    assert "https:" not in picture
    if os.environ.get("GLASSLET_PICTURES"):
        PICTURE.write_text(picture)
    assert PICTURE.read_text() == picture
