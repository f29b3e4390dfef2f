from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.object import PodUID
from glasslet.host.files.layout import RootLayout
from glasslet.host.user_ids import NoUserIds, SpareIds, SubordinateIdsUnusable, UserIds, parse_ids

ONE, TWO = PodUID("uid-1"), PodUID("uid-2")


def ids_at(root: Path, **spare: int) -> UserIds:
    return UserIds(root=RootLayout(str(root)), spare=SpareIds(**spare))


def userns_file(root: Path, uid: str) -> Path:
    return root / "pods" / uid / "userns"


def test_a_block_is_written_as_the_go_kubelet_does(tmp_path: Path) -> None:
    # behaviours.md §31: 'Stored per pod as {"uidMappings":[{hostId, containerId, length}],"gidMappings":[...]}.'
    first = ids_at(tmp_path).ensure(ONE)
    mapping = [{"hostId": first, "containerId": 0, "length": 65536}]
    assert json.loads(userns_file(tmp_path, ONE).read_text()) == {"uidMappings": mapping, "gidMappings": mapping}


def test_blocks_are_whole_and_above_that_of_the_host(tmp_path: Path) -> None:
    # behaviours.md §31: "idsPerPod (65536, multiple of it) ids per pod at a random free block; [...] else 65536 up; the
    # first block is the host's."
    ids = ids_at(tmp_path)
    taken = [ids.ensure(PodUID(f"uid-{n}")) for n in range(50)]
    assert len(set(taken)) == 50
    assert all(first >= 65536 and first % 65536 == 0 and first + 65536 <= 2**32 for first in taken)


def test_a_pod_keeps_its_block_over_a_restart_of_the_agent(tmp_path: Path) -> None:
    before = ids_at(tmp_path).ensure(ONE)
    after = ids_at(tmp_path)
    assert after.load([ONE]) == []
    assert after.ensure(ONE) == before


def test_blocks_that_are_in_use_are_known_before_the_first_is_given(tmp_path: Path) -> None:
    spare = {"first": 65536, "count": 2 * 65536}
    before = ids_at(tmp_path, **spare).ensure(ONE)
    after = ids_at(tmp_path, **spare)
    after.load([ONE])
    assert {before, after.ensure(TWO)} == {65536, 131072}


def test_a_released_block_and_its_file_are_free_again(tmp_path: Path) -> None:
    # behaviours.md §4: "pod cgroup removed (remaining processes killed, up to 5 tries), user namespace released"
    ids = ids_at(tmp_path, first=65536, count=65536)
    ids.ensure(ONE)
    ids.release(ONE)
    assert not userns_file(tmp_path, ONE).exists()
    assert ids.ensure(TWO) == 65536


def test_no_block_left_is_told(tmp_path: Path) -> None:
    ids = ids_at(tmp_path, first=65536, count=65536)
    ids.ensure(ONE)
    with pytest.raises(NoUserIds, match="could not find an empty slot to allocate a user namespace"):
        ids.ensure(TWO)


def test_the_block_of_a_pod_whose_folder_is_gone_is_given_again(tmp_path: Path) -> None:
    ids = ids_at(tmp_path, first=65536, count=65536)
    ids.ensure(ONE)
    userns_file(tmp_path, ONE).unlink()
    assert ids.ensure(TWO) == 65536


MAPPING = {"hostId": 65536, "containerId": 0, "length": 65536}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("garbage", "invalid user namespace mappings file"),
        ({"uidMappings": [], "gidMappings": []}, "invalid user namespace mappings file"),
        ({"uidMappings": [MAPPING]}, "invalid user namespace mappings file"),
        (
            {"uidMappings": [MAPPING], "gidMappings": [{**MAPPING, "hostId": 131072}]},
            "invalid user namespace configuration: GID and UID mapping should be identical",
        ),
        ({**MAPPING, "containerId": 1}, "invalid user namespace configuration: UID 0 must be mapped"),
        ({**MAPPING, "length": 5}, "wrong user namespace length 5"),
        ({**MAPPING, "hostId": 65537}, "wrong user namespace offset specified 65537"),
        ({**MAPPING, "hostId": 0}, "id 0 is out of range"),
    ],
)
def test_a_file_that_is_wrong_is_told_and_kept(tmp_path: Path, content: Any, problem: str) -> None:
    if isinstance(content, dict) and "hostId" in content:
        content = {"uidMappings": [content], "gidMappings": [content]}
    file = userns_file(tmp_path, ONE)
    file.parent.mkdir(parents=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    ids = ids_at(tmp_path)
    [found] = ids.load([ONE])
    assert found.startswith(f"user namespace of pod {ONE}: {problem}")
    with pytest.raises(NoUserIds, match=problem):
        ids.ensure(ONE)
    assert file.exists()


def test_two_pods_with_one_block_are_told(tmp_path: Path) -> None:
    ids = ids_at(tmp_path)
    ids.ensure(ONE)
    file = userns_file(tmp_path, TWO)
    file.parent.mkdir(parents=True)
    file.write_bytes(userns_file(tmp_path, ONE).read_bytes())
    assert ids.load([TWO]) == [f'user namespace of pod {TWO}: range picked for pod "{TWO}" already taken']


@pytest.mark.parametrize(
    ("spare", "problem"),
    [
        ({}, None),
        ({"first": 65537}, "kubelet user assigned ID 65537 is not a multiple of 65536"),
        ({"first": 0}, "kubelet user assigned ID 0 must be greater or equal to 65536"),
        ({"count": 65537}, "kubelet user assigned IDs length 65537 is not a multiple of 65536"),
        ({"count": 65536}, "kubelet user assigned IDs are not enough to support 110 pods"),
    ],
)
def test_ids_that_cannot_serve_are_named(spare: dict[str, int], problem: str | None) -> None:
    # behaviours.md §31: "(one equal uid and gid range, start a multiple of and >= idsPerPod, length a multiple and
    # enough for maxPods)"
    assert SpareIds(**spare).problem(110) == problem


def test_the_answer_of_getsubids_is_one_line() -> None:
    # behaviours.md §31: "range from getsubids for user kubelet when that user and tool exist"
    assert parse_ids("0: kubelet 65536 7208960\n") == (65536, 7208960)


@pytest.mark.parametrize("output", ["", "0: kubelet 65536\n", "0: kubelet -1 5\n", "0: kubelet 1 2\n1: kubelet 3 4\n"])
def test_another_answer_of_getsubids_is_refused(output: str) -> None:
    with pytest.raises(SubordinateIdsUnusable):
        parse_ids(output)


@pytest.mark.timeout(10)
def test_a_pipe_in_place_of_the_file_holds_nothing_up(tmp_path: Path) -> None:
    path = userns_file(tmp_path, ONE)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert ids_at(tmp_path).load([ONE]) == [f"user namespace of pod {ONE}: [Errno 22] is not a regular file: '{path}'"]
