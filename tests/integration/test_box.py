"""A whole application of a cluster on one machine: `glasslet up` of examples/shop on a real containerd."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.containerd import missing_requirement
from tests.integration.test_cli_up_and_down import Machine, eventually

SHOP = Path(__file__).parents[2] / "examples" / "shop" / "shop.yaml"


class Shop:
    """The shop, with a node port that nothing else has."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine(folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.file = folder / "shop.yaml"
        self.write(SHOP.read_text())

    def write(self, text: str) -> None:
        """Changes the file, as an editor does."""
        temporary = self.file.with_suffix(".new")
        temporary.write_text(text.replace("nodePort: 30080", f"nodePort: {self.port}"))
        temporary.replace(self.file)

    def up(self) -> None:
        """`glasslet up` of it, until all is settled."""
        done = self.machine.up(str(self.file))
        assert done.returncode == 0, done.stderr.decode()

    def page(self, path: str = "greeting") -> str:
        """The answer at the node port."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=10) as answer:
            return bytes(answer.read()).decode()

    def pods(self) -> dict[str, str]:
        """The pods that stay, by name, each with its UID: those of jobs come and go."""
        rows = json.loads(self.machine.run("ps", "-o", "json").stdout)["pods"]
        names = (row["name"].removesuffix("-here") for row in rows)
        stays = ("web-", "database-")
        return {name: row["uid"] for name, row in zip(names, rows, strict=True) if name.startswith(stays)}

    def run(self, pod: str, *words: str) -> str:
        """The output of a command in a pod."""
        done = self.machine.run("exec", f"shop/{pod}", "--", *words)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def controllers(self) -> int:
        """Their pid."""
        return int(self.machine.state.box_pid.read_text())


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    missing = missing_requirement()
    if missing is not None:
        pytest.skip(missing)
    made = Shop(tmp_path)
    yield made
    left = made.machine.down("--purge")
    assert left.returncode == 0, left.stderr.decode()


def test_an_application_comes_up_finds_itself_and_goes_without_a_trace(shop: Shop) -> None:
    shop.up()
    assert set(shop.pods()) >= {"web-0", "web-1", "database-0"}
    # Through the node port, the service's name and a pod's own name.
    assert shop.page() == "Welcome to the shop"
    assert shop.run("web-0", "wget", "-qO-", "http://web.shop/greeting") == "Welcome to the shop"
    assert "correct-horse" in shop.run("database-0", "sh", "-c", "echo $PASSWORD")
    data = shop.machine.state.claims / "shop" / "data-database-0" / "lines"
    # The job repeats itself until the database is there.
    eventually(lambda: data.read_text() == "apples\n")
    assert "apples" in shop.run("web-0", "sh", "-c", "echo correct-horse | nc -w 2 database-0.database.shop 5432")

    assert shop.machine.down().returncode == 0
    assert data.read_text() == "apples\n"
    assert not list(shop.machine.state.objects.glob("**/secrets/*"))
    with pytest.raises(OSError, match="refused"):
        shop.page()
    shop.up()
    # The job is a new one for the new run, the data are the old ones.
    eventually(lambda: data.read_text() == "apples\napples\n")


def test_an_application_joins_pods_that_run_already(shop: Shop) -> None:
    assert shop.machine.up(str(shop.machine.pods)).returncode == 0
    before, agent = shop.machine.pod("stays"), shop.machine.state.agent_pid.read_text()
    shop.up()
    assert shop.machine.pod("stays")["uid"] == before["uid"]
    assert shop.machine.pod("stays")["restarts"] == 0
    # The agent has started again, with its own settings and the server of names.
    assert shop.machine.state.agent_pid.read_text() != agent
    assert "enableServer: false" in shop.machine.state.config.read_text()
    assert shop.run("web-0", "wget", "-qO-", "http://web.shop/greeting") == "Welcome to the shop"


def test_a_changed_file_changes_what_runs_and_no_request_is_lost(shop: Shop) -> None:
    shop.up()
    before, lost, ended = shop.pods(), [], threading.Event()

    def visit() -> None:
        while not ended.is_set():
            try:
                shop.page()
            except OSError as error:
                lost.append(error)
            time.sleep(0.02)

    visitor = threading.Thread(target=visit)
    visitor.start()
    try:
        shop.write(SHOP.read_text().replace('-p, "8080", -h, /pages', '-v, -p, "8080", -h, /pages'))
        eventually(lambda: not set(before.items()) & {(n, u) for n, u in shop.pods().items() if n.startswith("web")})
        eventually(lambda: len([name for name in shop.pods() if name.startswith("web")]) == 2)
    finally:
        ended.set()
        visitor.join()
    # A pod that ends may still be asked in the moment before its end is seen.
    assert len(lost) <= 2, lost
    assert shop.pods()["database-0"] == before["database-0"]


def test_a_broken_change_leaves_what_runs_and_is_told(shop: Shop) -> None:
    shop.up()
    before = shop.pods()
    shop.write(SHOP.read_text().replace("replicas: 2", "replicas: two"))
    done = shop.machine.up(str(shop.file))
    assert done.returncode == 1
    assert b"Deployment shop/web: spec: " in done.stderr
    assert shop.pods() == before


def test_killed_controllers_and_a_killed_agent_change_no_pod(shop: Shop) -> None:
    shop.up()
    before = shop.pods()
    with contextlib.suppress(ProcessLookupError):
        os.kill(shop.controllers(), signal.SIGKILL)
    shop.machine.end_agent(signal.SIGKILL)
    shop.up()
    assert shop.pods() == before
    assert shop.page() == "Welcome to the shop"


def test_a_dry_run_says_what_would_change_and_hides_secrets(shop: Shop) -> None:
    done = shop.machine.run("up", str(shop.file), "--state", str(shop.machine.state.path), "--dry-run")
    assert done.returncode == 0, done.stderr.decode()
    assert b"new: Pod shop/web-1" in done.stdout
    assert b"new: namespaces/shop/secrets/database" in done.stdout
    assert b"correct" not in done.stdout
    assert not shop.machine.state.manifests.exists()
