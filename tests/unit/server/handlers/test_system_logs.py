"""What kind of file a log is."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.server.handlers.system_logs import file_type


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("syslog", b"Jan  1 words\n", "text/plain; charset=utf-8"),
        ("kern.log", b"", "text/plain; charset=utf-8"),
        ("wtmp", b"\x07\x00\x00\x00", "application/octet-stream"),
        ("syslog.1.gz", b"\x1f\x8b", "application/x-gzip"),
        ("report.html", b"<p>", "text/html; charset=utf-8"),
        ("dump.json", b"{}", "application/json"),
    ],
)
def test_kind_is_that_of_the_ending_or_else_of_the_content(
    tmp_path: Path, name: str, data: bytes, expected: str
) -> None:
    (tmp_path / name).write_bytes(data)
    assert file_type(str(tmp_path / name)) == expected
