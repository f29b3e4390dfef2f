from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.concurrency.clock import LoopClock
from glasslet.host.files.layout import LogLayout, RootLayout, UnsafePath
from glasslet.host.files.pod_files import MAX_NODE_HOSTS, PodFiles
from glasslet.podspec.hostname import pod_hostname
from tests.builders.observed import exited_container
from tests.builders.podspec import pod_of
from tests.fakes.inline_threads import HeldThreads, InlineThreads

REF = PodRef("default", "web", PodUID("uid-1"))
ID = ContainerID("f" * 64)
CLOCK = LoopClock()


@pytest.fixture
def files(tmp_path: Path) -> PodFiles:
    (tmp_path / "node-hosts").write_text("127.0.0.1 localhost\n192.0.2.1 node-1\n")

    def hostname(pod: Pod) -> tuple[str, str]:
        return pod_hostname(pod, "cluster.local")

    return PodFiles(
        root=RootLayout(str(tmp_path / "root")),
        logs=LogLayout(str(tmp_path / "logs"), str(tmp_path / "links")),
        hostname=hostname,
        threads=InlineThreads(),
        clock=CLOCK,
        node_hosts_file=str(tmp_path / "node-hosts"),
    )


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def test_data_directories_are_private_and_log_directories_readable(files: PodFiles, tmp_path: Path) -> None:
    # behaviours.md §1: "Data directories: pod, volumes, plugins, each 0750."
    # behaviours.md §18: "podLogsDir 0750, pod and container directories and /var/log/containers 0755"
    pod = pod_of({}, {}, initContainers=[{"name": "setup", "image": "busybox"}])
    await files.prepare(pod)
    await files.prepare(pod)
    home = tmp_path / "root" / "pods" / "uid-1"
    assert [mode(p) for p in (home, home / "volumes", home / "plugins")] == [0o750] * 3
    logs = tmp_path / "logs" / "default_web_uid-1"
    assert mode(tmp_path / "logs") == 0o750
    assert {p.name: mode(p) for p in logs.iterdir()} == {"setup": 0o755, "main": 0o755, "c1": 0o755}
    assert mode(logs) == 0o755


async def test_a_uid_that_leads_elsewhere_makes_nothing(files: PodFiles, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="pod uid"):
        await files.prepare(pod_of(meta={"uid": "../../elsewhere"}))
    assert not (tmp_path / "root").exists()


UPWARD = "../../../../evil"


@pytest.mark.parametrize(
    ("name", "meta"),
    [(name, {}) for name in ("..", UPWARD, "a/b", "", "x" * 300, "with\0zero")]
    + [("main", {field: name}) for field in ("name", "namespace") for name in (UPWARD, "a/b", "x" * 300, "with\0zero")],
)
async def test_names_that_lead_elsewhere_make_nothing_there(
    files: PodFiles, tmp_path: Path, name: str, meta: dict[str, str]
) -> None:
    pod = pod_of(TERMINATION | {"name": name}, meta=meta)
    with pytest.raises(UnsafePath, match="cannot be a file name"):
        await files.prepare(pod)
    if not meta:
        with pytest.raises(UnsafePath, match="container name"):
            await files.termination_log(pod, pod.spec.containers[0])
    assert {path.name for path in tmp_path.iterdir()} <= {"node-hosts", "root", "logs"}
    assert [path.name for path in (tmp_path / "root").rglob("*")].count("evil") == 0


# behaviours.md §19: "Then: 127.0.0.1 localhost; ::1 localhost ip6-localhost ip6-loopback; fe00::0 ip6-localnet; fe00::0
# ip6-mcastprefix; fe00::1 ip6-allnodes; fe00::2 ip6-allrouters"
LOCAL = """# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


async def hosts(files: PodFiles, *ips: str, **spec: Any) -> str:
    pod = pod_of(**spec)
    await files.prepare(pod)
    path = Path(await files.etc_hosts(pod, ips))
    # behaviours.md §19: "Mode 0644."
    assert mode(path) == 0o644
    return path.read_text()


async def test_each_address_has_a_line_with_the_host_name(files: PodFiles) -> None:
    # behaviours.md §19: "one line per pod IP with `<hostname>.<subdomain>.<ns>.svc.<domain>` if a subdomain is set and
    # the host name. Separator: one tab."
    assert await hosts(files, "10.0.0.7", "fd00::7") == LOCAL + "10.0.0.7\tweb\nfd00::7\tweb\n"


async def test_a_subdomain_gives_the_full_name_too(files: PodFiles) -> None:
    found = await hosts(files, "10.0.0.7", hostname="db-0", subdomain="db")
    assert found == LOCAL + "10.0.0.7\tdb-0.db.default.svc.cluster.local\tdb-0\n"


async def test_host_aliases_end_the_file(files: PodFiles) -> None:
    # behaviours.md §19: "hostAliases: empty line, `# Entries added by HostAliases.`, one line per alias with its names
    # separated by tabs."
    aliases = [{"ip": "1.2.3.4", "hostnames": ["a", "b"]}, {"ip": "1.2.3.5", "hostnames": ["c"]}]
    found = await hosts(files, "10.0.0.7", hostAliases=aliases)
    assert found.endswith("10.0.0.7\tweb\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n1.2.3.5\tc\n")


async def test_a_pod_on_the_host_network_has_the_nodes_file(files: PodFiles) -> None:
    found = await hosts(files, hostNetwork=True, hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]}])
    assert found == (
        "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n192.0.2.1 node-1\n"
        "\n# Entries added by HostAliases.\n1.2.3.4\ta\n"
    )


async def test_a_pod_without_address_has_no_hosts_file(files: PodFiles) -> None:
    # behaviours.md §19: "mounted when the pod has IPs or uses the host network"
    assert await files.etc_hosts(pod_of(), ()) == ""


async def test_a_new_address_is_written_into_the_file_that_containers_have_mounted(files: PodFiles) -> None:
    # behaviours.md §19: "Mode 0644. Rewritten at each container start."
    pod = pod_of()
    await files.prepare(pod)
    path = Path(await files.etc_hosts(pod, ("10.0.0.7",)))
    before = path.stat().st_ino
    await files.etc_hosts(pod, ("10.0.0.8",))
    assert path.stat().st_ino == before
    assert path.read_text().endswith("10.0.0.8\tweb\n")


TERMINATION = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}


async def test_a_termination_log_is_empty_and_writable_for_all(files: PodFiles) -> None:
    # behaviours.md §19: "mode 0666, directory 0750"
    pod = pod_of(TERMINATION)
    path = Path(await files.termination_log(pod, pod.spec.containers[0]))
    assert (mode(path), path.read_text(), mode(path.parent)) == (0o666, "", 0o750)
    assert path.parent.name == "main"


async def test_a_container_without_message_path_has_no_termination_log(files: PodFiles) -> None:
    pod = pod_of()
    container = pod.spec.containers[0]
    assert await files.termination_log(pod, container) == ""
    assert await files.termination_message(pod, container, exited_container(code=1)) == ""


async def test_each_instance_keeps_its_own_words_also_for_a_restarted_agent(files: PodFiles, tmp_path: Path) -> None:
    pod = pod_of(TERMINATION)
    container = pod.spec.containers[0]
    first = Path(await files.termination_log(pod, container))
    first.write_text("first")
    second = first.with_name(f"{int(first.name, 16) + 60_000:08x}")
    second.write_text("second")
    for seconds, words in ((0.05, "first"), (60.05, "second")):
        instance = exited_container(created_at=CLOCK.now() + timedelta(seconds=seconds), code=1)
        assert await files.termination_message(pod, container, instance) == words


async def test_of_a_container_that_starts_again_and_again_the_newest_termination_logs_stay(files: PodFiles) -> None:
    pod = pod_of(TERMINATION)
    container = pod.spec.containers[0]
    newest = Path(await files.termination_log(pod, container))
    for number in range(50):
        old = newest.with_name(f"{number:08x}")
        old.write_text("x")
        # A container sets the times of its own files.
        os.utime(old, (1 << 33, 1 << 33))
    newest.unlink()
    newest = Path(await files.termination_log(pod, container))
    names = {path.name for path in newest.parent.iterdir()}
    assert names == {newest.name, *(f"{number:08x}" for number in range(43, 50))}


async def test_logs_that_another_kubelet_made_are_read_by_their_age(files: PodFiles) -> None:
    pod = pod_of(TERMINATION)
    container = pod.spec.containers[0]
    directory = Path(await files.termination_log(pod, container)).parent
    for path in directory.iterdir():
        path.unlink()
    for age, name in ((50, "deadbeef"), (10, "0badcafe")):
        (directory / name).write_text(name)
        os.utime(directory / name, (1_000_000 - age, 1_000_000 - age))
    assert await files.termination_message(pod, container, exited_container(code=1)) == "0badcafe"


@pytest.mark.parametrize(
    ("names", "last"),
    [
        # behaviours.md §2: "highest number among `<n>.log*` files in the container's log directory"
        ([], None),
        (["0.log"], 0),
        (["2.log", "10.log.20260101-000000.gz", "3.log.tmp"], 10),
        (["x.log", "7.txt", "log", "5"], None),
    ],
)
async def test_the_last_attempt_is_read_off_the_logs(
    files: PodFiles, tmp_path: Path, names: list[str], last: Any
) -> None:
    directory = tmp_path / "logs" / "default_web_uid-1" / "main"
    directory.mkdir(parents=True)
    for name in names:
        (directory / name).write_text("")
    assert files.last_attempt(REF, "main") == last


async def test_a_container_that_never_logged_has_no_last_attempt(files: PodFiles) -> None:
    assert files.last_attempt(REF, "main") is None


async def logged(files: PodFiles, tmp_path: Path, *names: str) -> Path:
    await files.prepare(pod_of())
    directory = tmp_path / "logs" / "default_web_uid-1" / "main"
    for name in names:
        (directory / name).write_text("x")
    return directory


async def test_a_log_is_linked_for_collectors(files: PodFiles, tmp_path: Path) -> None:
    directory = await logged(files, tmp_path, "0.log")
    for _ in range(2):
        await files.link_log(REF, "main", ID, str(directory / "0.log"))
    link = tmp_path / "links" / f"web_default_main-{ID}.log"
    assert os.readlink(link) == str(directory / "0.log")
    assert mode(tmp_path / "links") == 0o755


async def test_a_link_that_points_elsewhere_is_put_right(files: PodFiles, tmp_path: Path) -> None:
    directory = await logged(files, tmp_path, "0.log", "1.log")
    await files.link_log(REF, "main", ID, str(directory / "0.log"))
    await files.link_log(REF, "main", ID, str(directory / "1.log"))
    assert os.readlink(tmp_path / "links" / f"web_default_main-{ID}.log") == str(directory / "1.log")


async def test_a_log_that_is_not_there_is_not_linked(files: PodFiles, tmp_path: Path) -> None:
    # behaviours.md §2: "link in /var/log/containers (only if the log file exists)"
    await files.link_log(REF, "main", ID, str(tmp_path / "none.log"))
    assert not (tmp_path / "links").exists()


async def test_a_removed_instance_takes_its_logs_and_link_along(files: PodFiles, tmp_path: Path) -> None:
    # behaviours.md §9: "Removing a container deletes its log files (`<log>*`) and link first."
    # behaviours.md §18: "Logs are deleted with the container"
    directory = await logged(files, tmp_path, "1.log", "1.log.20260101-000000.gz", "11.log", "2.log")
    await files.link_log(REF, "main", ID, str(directory / "1.log"))
    await files.remove_log(REF, exited_container(attempt=1, id=ID))
    await files.remove_log(REF, exited_container(attempt=1, id=ID))
    assert sorted(os.listdir(directory)) == ["11.log", "2.log"]
    assert os.listdir(tmp_path / "links") == []


async def test_a_removed_pod_leaves_nothing(files: PodFiles, tmp_path: Path) -> None:
    pod = pod_of(TERMINATION)
    directory = await logged(files, tmp_path, "0.log")
    await files.etc_hosts(pod, ("10.0.0.7",))
    await files.termination_log(pod, pod.spec.containers[0])
    await files.link_log(REF, "main", ID, str(directory / "0.log"))
    (tmp_path / "root" / "pods" / "uid-1" / "volumes" / "kubernetes.io~empty-dir").mkdir()
    await files.remove(REF)
    await files.remove(REF)
    assert files.uids_on_disk() == ()
    assert os.listdir(tmp_path / "logs") == os.listdir(tmp_path / "links") == []


async def test_links_of_other_pods_stay(files: PodFiles, tmp_path: Path) -> None:
    other = pod_of(meta={"name": "other", "uid": "uid-2"})
    await files.prepare(other)
    log = tmp_path / "logs" / "default_other_uid-2" / "main" / "0.log"
    log.write_text("x")
    await files.link_log(pod_ref(other), "main", ID, str(log))
    await files.prepare(pod_of())
    await files.remove(REF)
    assert len(os.listdir(tmp_path / "links")) == 1
    assert log.exists()
    assert files.uids_on_disk() == ("uid-2",)


@pytest.mark.parametrize("left", ["volumes/kubernetes.io~csi/disk", "volume-subpaths/v/main", "volumeDevices/x"])
async def test_data_of_volumes_is_never_removed_with_the_pod(files: PodFiles, tmp_path: Path, left: str) -> None:
    # behaviours.md §22: "removed only with empty directories (rmdir); remaining content or mounts are left and logged"
    await files.prepare(pod_of())
    precious = tmp_path / "root" / "pods" / "uid-1" / left / "precious"
    precious.parent.mkdir(parents=True)
    precious.write_text("data")
    with pytest.raises(OSError, match="data of volumes is still there"):
        await files.remove(REF)
    assert precious.read_text() == "data"


def test_no_pods_directory_means_no_pods(files: PodFiles) -> None:
    assert files.uids_on_disk() == ()


async def test_a_hosts_file_of_any_size_is_rewritten_and_keeps_its_inode(files: PodFiles, tmp_path: Path) -> None:
    text = await hosts(files, "10.0.0.7")
    path = tmp_path / "root" / "pods" / "uid-1" / "etc-hosts"
    before = path.stat().st_ino
    os.truncate(path, 8 << 30)
    assert await hosts(files, "10.0.0.7") == text
    assert path.stat().st_ino == before


async def test_files_that_containers_can_write_are_touched_in_threads_only(tmp_path: Path) -> None:
    threads = HeldThreads()
    files = PodFiles(
        root=RootLayout(str(tmp_path)),
        logs=LogLayout(str(tmp_path / "logs"), str(tmp_path / "links")),
        hostname=lambda pod: ("web", ""),
        threads=threads,
        clock=CLOCK,
    )
    (tmp_path / "env").write_text("A=1")
    pod = pod_of()
    await files.prepare(pod)
    hosts_file = asyncio.create_task(files.etc_hosts(pod, ("10.0.0.7",)))
    variables = asyncio.create_task(files.env_files(pod, {(str(tmp_path), "env"): {"A"}}))
    await asyncio.sleep(0)
    assert not (tmp_path / "pods" / "uid-1" / "etc-hosts").exists()
    assert not variables.done()
    threads.released.set()
    assert Path(await hosts_file).exists()
    assert (await variables)[str(tmp_path), "env"].value("A") == "1"


async def test_a_hosts_file_of_the_node_that_is_too_large_is_an_error(files: PodFiles, tmp_path: Path) -> None:
    os.truncate(tmp_path / "node-hosts", MAX_NODE_HOSTS + 1)
    with pytest.raises(OSError, match=f"is larger than {MAX_NODE_HOSTS} bytes"):
        await hosts(files, hostNetwork=True)
