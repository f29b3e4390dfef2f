"""Which pods the manifest files of a folder stand for. Rules: behaviours.md §13."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from glasslet.sources.manifest_files import ManifestFiles
from tests.builders.manifests import READER, manifest, text_of, write

LONG_AGO = 1_700_000_000


class Folder:
    """A folder and what is read from it. Files are given old time stamps: they are not being written."""

    def __init__(self, path: Path, *, every_document: bool = False) -> None:
        self.path = path
        self.files = ManifestFiles(paths=(str(path),), reader=READER, every_document=every_document)

    def names(self) -> list[str] | None:
        pods = self.files.pods()
        return None if pods is None else [pod.metadata.name.removesuffix("-node-1") for pod in pods]

    def findings(self) -> list[str]:
        return [text.replace(f"{self.path}/", "") for text in self.files.findings()]

    def look(self) -> list[str] | None:
        self.files.check_all()
        return self.names()

    def change(self, name: str, text: str) -> list[str] | None:
        """As when the kernel reports one file."""
        (self.path / name).write_text(text)
        self.files.check({str(self.path / name)})
        return self.names()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_files_are_read_in_the_order_of_their_names(folder: Folder) -> None:
    # behaviours.md §13: "sorted by name"
    for name in ("b", "a", "c"):
        write(folder.path, name)
    assert folder.look() == ["a", "b", "c"]


def test_json_is_read_like_yaml(folder: Folder) -> None:
    import json

    (folder.path / "web.json").write_text(json.dumps(manifest()))
    assert folder.look() == ["web"]


def test_dot_files_are_skipped_in_silence(folder: Folder) -> None:
    # behaviours.md §13: "dot files skipped"
    (folder.path / ".hidden.yaml").write_text("{{{")
    assert (folder.look(), folder.findings()) == ([], [])


def test_folders_are_not_entered(folder: Folder) -> None:
    # behaviours.md §13: "file or directory (non-recursive...)"
    (folder.path / "sub").mkdir()
    write(folder.path / "sub", "deep")
    assert folder.look() == []
    assert folder.findings() == ["sub: is a directory; manifests are not looked for in it"]


def test_links_to_regular_files_are_followed(folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = write(tmp_path_factory.mktemp("elsewhere"))
    (folder.path / "web.yaml").symlink_to(target)
    assert folder.look() == ["web"]


def test_a_broken_file_is_skipped_and_the_others_count(folder: Folder) -> None:
    # behaviours.md §13: "A broken file is logged and skipped, the others count."
    (folder.path / "a.yaml").write_text("kind: [")
    write(folder.path, "b")
    assert folder.look() == ["b"]
    assert len(folder.findings()) == 1


def test_a_missing_path_means_no_pods(tmp_path: Path) -> None:
    # behaviours.md §13: "A missing path is polled and means no pods."
    assert Folder(tmp_path / "missing").look() == []


def test_a_path_may_be_one_file(tmp_path: Path) -> None:
    assert Folder(write(tmp_path)).look() == ["web"]


def test_a_single_file_that_was_never_good_says_nothing(tmp_path: Path) -> None:
    """Upstream leaves the source unseen then, so that nothing running is taken for unwanted."""
    (tmp_path / "bad.yaml").write_text("{")
    assert Folder(tmp_path / "bad.yaml").look() is None


def test_a_bad_path_does_not_hide_the_good_one(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("{")
    good = write(tmp_path)
    files = ManifestFiles(paths=(str(tmp_path / "bad.yaml"), str(good)), reader=READER)
    files.check_all()
    assert len(files.pods() or []) == 1


def test_an_unchanged_file_gives_the_very_same_pod(folder: Folder) -> None:
    os.utime(write(folder.path), (LONG_AGO, LONG_AGO))
    folder.look()
    before = folder.files.pods()
    folder.files.check(set())
    after = folder.files.pods()
    assert before is not None
    assert after is not None
    assert before[0] is after[0]


def test_a_removed_file_takes_its_pod_along(folder: Folder) -> None:
    path = write(folder.path)
    folder.look()
    path.unlink()
    folder.files.check({str(path)})
    assert folder.names() == []


def test_a_file_that_turns_bad_keeps_its_pod_until_a_full_look_finds_it_unchanged(folder: Folder) -> None:
    write(folder.path)
    folder.look()
    assert folder.change("web.yaml", "kind: [") == ["web"]
    assert len(folder.findings()) == 1
    assert folder.look() == []
    assert len(folder.findings()) == 1


def test_a_file_that_a_full_look_catches_half_written_keeps_its_pod(folder: Folder) -> None:
    write(folder.path)
    folder.look()
    (folder.path / "web.yaml").write_text("kind: [")
    assert folder.look() == ["web"]


def test_a_file_that_is_good_again_is_no_finding(folder: Folder) -> None:
    write(folder.path)
    folder.look()
    folder.change("web.yaml", "kind: [")
    assert folder.change("web.yaml", text_of(manifest(hostNetwork=True))) == ["web"]
    assert folder.findings() == []


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("single", [True, False])
def test_a_file_that_the_machine_cannot_read_says_what_it_said_last(tmp_path: Path, single: bool) -> None:
    path = write(tmp_path)
    folder = Folder(path if single else tmp_path)
    folder.look()
    write(tmp_path, "other", file="web.yaml")
    with no_descriptor_left():
        assert [folder.look() for _ in range(4)] == [["web"]] * 4
        assert "Too many open files" in folder.findings()[0]
    assert folder.look() == ["other"]
    assert folder.findings() == []


def test_a_disk_that_fails_takes_no_pod_away(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder.path)
    folder.look()
    real = os.stat

    def failing(path: str) -> os.stat_result:
        if str(path).endswith(".yaml"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path)

    monkeypatch.setattr("glasslet.sources.manifest_files.os.stat", failing)
    assert [folder.look() for _ in range(4)] == [["web"]] * 4
    assert folder.findings() == ["web.yaml: cannot be looked at: Input/output error"]


def test_a_change_of_one_file_does_not_read_the_others(folder: Folder) -> None:
    write(folder.path, "a")
    write(folder.path, "b")
    folder.look()
    (folder.path / "b.yaml").write_text("kind: [")
    assert folder.change("a.yaml", "kind: [") == ["a", "b"]
    assert len(folder.findings()) == 1


def test_only_the_first_document_of_a_file_counts(folder: Folder) -> None:
    (folder.path / "two.yaml").write_text(f"{text_of(manifest('a'))}---\n{text_of(manifest('b'))}")
    assert folder.look() == ["a"]
    assert folder.findings() == ["two.yaml: only the first document of a manifest file is read, 1 more ignored"]


def test_every_document_counts_when_asked_for(tmp_path: Path) -> None:
    both = f"{text_of(manifest('a'))}---\n{text_of(manifest('b'))}"
    (tmp_path / "two.yaml").write_text(both)
    assert Folder(tmp_path, every_document=True).look() == ["a", "b"]


def test_a_repeated_key_is_a_finding_and_the_last_value_counts(folder: Folder) -> None:
    """Upstream runs such a pod without a word."""
    (folder.path / "web.yaml").write_text(text_of(manifest()) + "metadata:\n  name: other\n")
    assert folder.look() == ["other"]
    assert len(folder.findings()) == 1
    assert "given more than once" in folder.findings()[0]


def test_thousands_of_repeated_keys_are_one_short_finding(folder: Folder) -> None:
    repeated = f"kind: Pod\n? {'k' * 100_000}\n: 1\n? {'k' * 100_000}\n: 1\n" + "kind: Pod\n" * 10_000
    (folder.path / "web.yaml").write_text(text_of(manifest()) + repeated)
    [finding] = folder.findings() if folder.look() else []
    assert finding.endswith("and 9997 more: given more than once, the last one counts")
    assert len(finding) < 1000


@pytest.mark.parametrize("text", ["", "\n", "# nothing but a comment\n", "---\n---\n"])
def test_an_empty_file_is_one_finding(folder: Folder, text: str) -> None:
    (folder.path / "web.yaml").write_text(text)
    assert folder.look() == []
    assert folder.findings() == ["web.yaml: is empty, want a Pod"]


def test_a_name_that_is_no_text_can_be_told(folder: Folder) -> None:
    (folder.path / os.fsdecode(b"\xff.yaml")).write_text("{")
    folder.look()
    assert folder.findings()[0].encode().startswith("\N{REPLACEMENT CHARACTER}.yaml".encode())


def test_a_broken_file_has_all_its_problems_and_a_good_one_none(folder: Folder) -> None:
    write(folder.path, "Web", file="wrong.yaml", dnsPolicy="Mine", hostNetwork="perhaps")
    write(folder.path, "good")
    folder.look()
    (problem,) = folder.files.broken()
    assert problem.place == str(folder.path / "wrong.yaml")
    assert [part.message.partition(":")[0] for part in problem.parts] == [
        "spec.hostNetwork",
        "metadata.name",
        "spec.dnsPolicy",
    ]


def test_a_file_whose_last_pods_are_kept_is_not_broken_yet(folder: Folder) -> None:
    write(folder.path)
    folder.look()
    folder.change("web.yaml", "kind: [")
    assert list(folder.files.broken()) == []
    folder.look()
    assert len(list(folder.files.broken())) == 1
