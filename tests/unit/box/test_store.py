"""The folders that the controllers write."""

from __future__ import annotations

from pathlib import Path

from glasslet.box.store import make_folders
from tests.unit.box.world import Machine, workload

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"password": "word"}}


def test_pods_and_objects_come_and_go_with_the_plan(tmp_path: Path) -> None:
    store = make_folders(tmp_path)
    machine = Machine(workload("Deployment", replicas=2), SECRET, claims=tmp_path / "claims")
    store.apply(machine.look())
    assert sorted(entry.name for entry in store.manifests.iterdir()) == ["box.shop.web-0.json", "box.shop.web-1.json"]
    secret = store.objects / "api/v1/namespaces/default/secrets/db"
    assert secret.stat().st_mode & 0o077 == 0
    machine.documents = ()
    store.apply(machine.look())
    assert list(store.manifests.iterdir()) == []
    assert not secret.exists()


def test_what_is_remembered_survives_and_an_unchanged_plan_writes_nothing(tmp_path: Path) -> None:
    store = make_folders(tmp_path)
    machine = Machine(workload("Deployment"), workload("Job", "job"), claims=tmp_path / "claims")
    machine.settle()
    store.apply(machine.look())
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    store.apply(machine.look())
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before
    assert store.memory() == machine.memory


def test_an_older_revision_keeps_its_manifest(tmp_path: Path) -> None:
    store = make_folders(tmp_path)
    machine = Machine(workload("Deployment"), claims=tmp_path / "claims")
    machine.settle()
    store.apply(machine.look())
    machine.documents = (workload("Deployment", image="two"),)
    store.apply(machine.look())
    pods = store.pods()
    assert {name: body["spec"]["containers"][0]["image"] for (_, name), body in pods.items()} == {
        "web-0": "one",
        "web-1": "two",
    }


def test_a_damaged_memory_is_put_aside(tmp_path: Path) -> None:
    store = make_folders(tmp_path)
    (store.box / "memory.json").write_text("{")
    assert store.memory().slots == {}
    assert (store.box / "memory.damaged").read_text() == "{"
