"""What kind of file a log is."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.server.handlers import system_logs
from glasslet.server.handlers.system_logs import file_type, listing


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


def test_listing_of_a_very_large_folder_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_logs, "ENTRIES", 3)
    for number in range(4):
        (tmp_path / f"{number}.log").touch()
    page = listing(str(tmp_path)).decode()
    assert page.count("<a href") == 3
    assert "and more" in page
