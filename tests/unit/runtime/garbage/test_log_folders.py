"""Log directories of unknown pods and links that lead nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.api.object import ContainerID, PodUID
from glasslet.host.files.layout import LogLayout
from glasslet.runtime.garbage.log_folders import LogFolders, container_of_link, uid_of_folder


@pytest.fixture
def folders(tmp_path: Path) -> LogFolders:
    (tmp_path / "pods").mkdir()
    (tmp_path / "containers").mkdir()
    return LogFolders(LogLayout(pod_logs_dir=str(tmp_path / "pods"), links_dir=str(tmp_path / "containers")))


def pod_folder(tmp_path: Path, name: str) -> Path:
    container = tmp_path / "pods" / name / "main"
    container.mkdir(parents=True)
    (container / "0.log").write_text("text")
    return container / "0.log"


def link(tmp_path: Path, name: str, target: Path) -> Path:
    path = tmp_path / "containers" / name
    path.symlink_to(target)
    return path


@pytest.mark.parametrize(
    ("name", "uid"),
    [
        ("default_web_1-2-3", "1-2-3"),
        ("kube-system_dns_0123456789abcdef", "0123456789abcdef"),
        ("lost+found", None),
        ("default_web", None),
        ("a_b_c_d", None),
        ("a__c", None),
    ],
)
def test_the_uid_is_the_last_of_three_parts(name: str, uid: str | None) -> None:
    assert uid_of_folder(name) == uid


@pytest.mark.parametrize(
    ("name", "container"),
    [("web_default_main-abcdef0123.log", "abcdef0123"), ("web_default_main-abc.log", None), ("plain.log", None)],
)
def test_the_container_is_the_end_of_a_links_name(name: str, container: str | None) -> None:
    assert container_of_link(name) == container


def test_only_directories_of_the_given_pods_are_removed(folders: LogFolders, tmp_path: Path) -> None:
    for name in ("default_web_u1", "default_dns_u2", "somebody_elses"):
        pod_folder(tmp_path, name)
    assert folders.uids() == {"u1", "u2"}
    assert folders.remove(frozenset({PodUID("u1")})) == ("default_web_u1",)
    assert sorted(p.name for p in (tmp_path / "pods").iterdir()) == ["default_dns_u2", "somebody_elses"]


def test_a_link_in_a_log_directory_is_not_followed_when_it_is_removed(folders: LogFolders, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("keep")
    (tmp_path / "pods" / "default_web_u1").symlink_to(precious)
    folders.remove(frozenset({PodUID("u1")}))
    assert (precious / "file").exists()


def test_a_link_that_leads_nowhere_is_removed(folders: LogFolders, tmp_path: Path) -> None:
    log = pod_folder(tmp_path, "default_web_u1")
    good = link(tmp_path, "web_default_main-aaaaaaaa.log", log)
    bad = link(tmp_path, "web_default_main-bbbbbbbb.log", log.with_name("1.log"))
    assert folders.remove_dangling_links(frozenset()) == (bad.name,)
    assert good.is_symlink()
    assert not bad.is_symlink()


def test_the_link_of_a_container_that_did_not_exit_stays(folders: LogFolders, tmp_path: Path) -> None:
    # behaviours.md §9: "dangling links in /var/log/containers are removed unless their container still exists and did
    # not exit."
    bad = link(tmp_path, "web_default_main-bbbbbbbb.log", tmp_path / "pods" / "default_web_u1" / "main" / "0.log")
    assert folders.remove_dangling_links(frozenset({ContainerID("bbbbbbbb")})) == ()
    assert bad.is_symlink()


def test_links_to_elsewhere_and_plain_files_are_not_ours(folders: LogFolders, tmp_path: Path) -> None:
    elsewhere = link(tmp_path, "other_default_main-cccccccc.log", tmp_path / "gone.log")
    plain = tmp_path / "containers" / "x-dddddddd.log"
    plain.write_text("")
    assert folders.remove_dangling_links(frozenset()) == ()
    assert elsewhere.is_symlink()
    assert plain.exists()


def test_directories_that_do_not_exist_hold_nothing(tmp_path: Path) -> None:
    folders = LogFolders(LogLayout(pod_logs_dir=str(tmp_path / "none"), links_dir=str(tmp_path / "none")))
    assert folders.uids() == frozenset()
    assert folders.remove(frozenset({PodUID("u")})) == ()
    assert folders.remove_dangling_links(frozenset()) == ()
