"""`/logs/?query=`: the journal through a stand-in for journalctl, and files."""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from glasslet.server.handlers import node_logs
from glasslet.server.routes import RouteSwitches
from tests.component.server_fixture import Running, serving
from tests.fakes.http_client import Answer

UNITS = "kubelet.service\ncontainerd.service"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "syslog").write_text("a line of syslog\n")
    return folder


def journalctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A journalctl that lists UNITS and runs this script for the rest."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "journalctl"
    program.write_text(f'#!/bin/sh\ncase "$*" in *--field*) printf "{UNITS}\\n";; *) {script};; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@asynccontextmanager
async def queried(logs: Path, *, on: bool = True) -> AsyncIterator[Running]:
    async with serving(switches=RouteSwitches(system_logs=str(logs), node_log_query=on)) as running:
        yield running


async def ask(logs: Path, query: str, headers: dict[str, str] | None = None) -> Answer:
    async with queried(logs) as running:
        client = await running.client()
        return await client.ask("GET", f"/logs/?{query}", headers or {})


async def test_a_service_of_the_journal_gives_what_journalctl_prints(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journalctl(tmp_path, monkeypatch, 'echo "args: $*"; env | sort; echo oops >&2')
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    answer = await ask(logs, "query=kubelet&tailLines=3")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain;charset=UTF-8"
    assert "--lines=3 --unit=kubelet.service\n" in answer.text
    assert "oops" in answer.text
    assert "s3cret" not in answer.text


async def test_gzip_is_given_to_those_who_ask_for_nothing_else(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # http.md: "gzip only for Accept-Encoding exactly gzip"
    journalctl(tmp_path, monkeypatch, "echo words")
    packed = await ask(logs, "query=kubelet", {"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == b"words\n"
    plain = await ask(logs, "query=kubelet", {"Accept-Encoding": "gzip, deflate"})
    assert plain.body == b"words\n"


async def test_a_service_that_the_journal_does_not_know_is_looked_for_in_files(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # http.md: "a service unknown to the journal is looked up as <s>, <s>.log, <s>/<s>.log"
    journalctl(tmp_path, monkeypatch, "echo journal")
    (logs / "app").mkdir()
    (logs / "app" / "app.log").write_text("of app\n")
    assert (await ask(logs, "query=app")).text == "of app\n"
    assert (await ask(logs, "query=nothing")).text == "\nlog not found for nothing\n"
    both = await ask(logs, "query=kubelet&query=syslog")
    assert both.text == "journal\na line of syslog\n"
    options = await ask(logs, "query=syslog&tailLines=1")
    assert "options present and query resolved to log files for [syslog]" in options.text


async def test_without_journalctl_files_are_found_and_the_answer_says_so(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = (await ask(logs, "query=kubelet")).text
    assert (
        text == "\nlog not found for kubelet\n\njournalctl is not installed on this node: its journal cannot be read\n"
    )
    assert (await ask(logs, "query=syslog")).text.startswith("a line of syslog\n")


async def test_a_journalctl_that_fails_without_a_word_is_named(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journalctl(tmp_path, monkeypatch, "exit 3")
    assert "journalctl ended with code 3" in (await ask(logs, "query=kubelet")).text


async def test_a_query_ends_after_its_time_with_what_came_and_leaves_no_process(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # http.md: "journal reading stops after 30 s"
    monkeypatch.setattr(node_logs, "SECONDS", 1.0)
    journalctl(tmp_path, monkeypatch, f"echo first; sh -c 'echo $$ > {tmp_path}/pid; sleep 1000'; echo never")
    text = (await ask(logs, "query=kubelet")).text
    assert text.startswith("first\n")
    assert "not all of it" in text
    assert ended(int((tmp_path / "pid").read_text()))


def ended(pid: int) -> bool:
    """Whether a process is gone, or dead and only not yet fetched."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def test_a_client_that_goes_away_ends_the_process(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journalctl(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; exec yes")
    async with queried(logs) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.server.port)
        writer.write(b"GET /logs/?query=kubelet HTTP/1.1\r\nHost: node\r\n\r\n")
        await reader.readexactly(1000)
        writer.close()
        async with asyncio.timeout(20):
            while not ended(int((tmp_path / "pid").read_text())):
                await asyncio.sleep(0.05)


async def test_more_queries_than_may_run_wait_and_are_refused_in_the_end(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_logs, "TURN_SECONDS", 0.3)
    monkeypatch.setattr(node_logs, "SECONDS", 5.0)
    journalctl(tmp_path, monkeypatch, "echo first; exec sleep 1000")
    async with queried(logs) as running:
        clients = [await running.client() for _ in range(node_logs.QUERIES + 2)]
        answers = await asyncio.gather(*(client.ask("GET", "/logs/?query=kubelet", {}) for client in clients))
    assert sorted(answer.status for answer in answers) == [200, 200, 503, 503]


@pytest.mark.parametrize("name", ["/syslog", "./syslog", "../log/syslog", "sub/../syslog"])
async def test_a_file_is_served_by_its_name_below_the_folder(logs: Path, name: str) -> None:
    (logs / "sub").mkdir()
    answer = await ask(logs, f"query={name}")
    expected = (406, None) if name.startswith("..") else (200, "a line of syslog\n")
    assert answer.status == expected[0]
    assert expected[1] in (None, answer.text)


async def test_no_file_query_leads_out_of_the_folder_or_waits_for_a_writer(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (logs / "out").symlink_to(tmp_path / "secret")
    (logs / "inside").symlink_to("syslog")
    os.mkfifo(logs / "pipe")
    for name in ("/../secret", "/out", "/pipe", "/none", "/.", "/%00"):
        answer = await ask(logs, f"query={name}")
        assert (answer.status, "secret" in answer.body.decode().replace("/../secret", "")) == (406, False), name
    assert (await ask(logs, "query=out")).text.startswith("\nerror getting log for out: ")
    assert (await ask(logs, "query=/inside")).text == "a line of syslog\n"


async def test_refusals_have_their_status_and_a_path_is_not_allowed(logs: Path) -> None:
    async with queried(logs) as running:
        client = await running.client()
        answer = await client.ask("GET", "/logs/syslog?query=kubelet", {})
        assert (answer.status, answer.text) == (406, "path not allowed in query mode\n")
        assert (await client.ask("GET", "/logs/?query=", {})).status == 400
        assert (await client.ask("GET", "/logs/?tailLines=5", {})).status == 406
        assert (await client.ask("GET", "/logs/syslog", {})).text == "a line of syslog\n"


async def test_without_the_gate_the_parameters_mean_nothing(logs: Path) -> None:
    async with queried(logs, on=False) as running:
        answer = await (await running.client()).ask("GET", "/logs/?query=kubelet", {})
        assert answer.status == 200
        assert "syslog" in answer.text
