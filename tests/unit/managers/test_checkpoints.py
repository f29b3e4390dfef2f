"""State files of the CPU and memory manager, written and read in the Go kubelet's form."""

from __future__ import annotations

import pytest

from glasslet.managers import cpu_checkpoint, memory_checkpoint
from glasslet.managers.cpu_checkpoint import BadStateFile
from glasslet.managers.cpu_sets import cpu_text, read_cpu_text
from glasslet.managers.cpu_state import CPUState
from glasslet.managers.memory_state import MemoryState

UID = "6f0dd0b6-5a3c-4c31-9b5e-0d3f6cf0a8f1"
MEMORY = (
    '{"policyName":"Static","machineState":{"0":{"numberOfAssignments":1,"memoryMap":{"memory":{"total":8589934592,'
    '"systemReserved":1153433600,"allocatable":7436500992,"reserved":134217728,"free":7302283264}},"cells":[0]}},'
    f'"entries":{{"{UID}":{{"main":[{{"numaAffinity":[0],"type":"memory","size":134217728}}]}}}},"checksum":697612116}}'
).encode()


@pytest.mark.parametrize(
    "file",
    [
        b'{"policyName":"none","defaultCpuSet":"","checksum":1353318690}',
        b'{"policyName":"static","defaultCpuSet":"0-1","checksum":1636926438}',
        f'{{"policyName":"static","defaultCpuSet":"0","entries":{{"{UID}":{{"main":"1"}}}},"checksum":4102255522}}'.encode(),
    ],
)
def test_cpu_files_are_read_and_written_as_they_are(file: bytes) -> None:
    policy = "none" if b"none" in file else "static"
    assert cpu_checkpoint.encode(policy, cpu_checkpoint.decode(file, policy=policy, ids={})) == file


def test_a_file_of_old_keeps_the_cpus_of_containers_that_run() -> None:
    entries = '{"containerID1":"4-6","containerID2":"1-3"}'
    file = f'{{"policyName":"none","defaultCpuSet":"1-3","entries":{entries},"checksum":3680390589}}'.encode()
    state = cpu_checkpoint.decode(file, policy="none", ids={"containerID1": ("pod", "main")})
    assert state.entries == {"pod": {"main": frozenset({4, 5, 6})}}
    empty = b'{"policyName":"none","defaultCpuSet":"1-3","checksum":354655845}'
    with pytest.raises(BadStateFile):
        cpu_checkpoint.decode(empty, policy="none", ids={})


def test_a_checksum_of_zero_is_none_and_names_are_read_in_any_case() -> None:
    file = b'{"POLICYNAME":"static","defaultcpuset":"0-3","other":1,"checksum":0}'
    assert cpu_checkpoint.decode(file, policy="static", ids={}) == CPUState(shared=frozenset(range(4)))


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (b"", "not readable"),
        (b"[]", "not readable"),
        (b"\xff", "not readable"),
        (b'{"policyName":"static","defaultCpuSet":"0","checksum":1}', "checkpoint is corrupted"),
        (
            b'{"policyName":"none","defaultCpuSet":"","checksum":0}',
            'configured policy "static" differs from state checkpoint policy "none"',
        ),
        (b'{"policyName":"static","defaultCpuSet":"3-1","checksum":0}', 'could not parse default cpu set "3-1"'),
        (
            b'{"policyName":"static","defaultCpuSet":"","entries":{"p":{"c":"x"}},"checksum":0}',
            'could not parse cpuset "x" for container "c" in pod "p"',
        ),
    ],
)
def test_a_bad_cpu_file_says_why(file: bytes, why: str) -> None:
    with pytest.raises(BadStateFile, match=why.replace("(", r"\(")):
        cpu_checkpoint.decode(file, policy="static", ids={})


def test_memory_files_are_read_and_written_as_they_are() -> None:
    assert memory_checkpoint.encode("Static", memory_checkpoint.decode(MEMORY, policy="Static")) == MEMORY
    none = b'{"policyName":"None","machineState":{},"checksum":4236770233}'
    assert memory_checkpoint.encode("None", MemoryState()) == none


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (MEMORY.replace(b"697612116", b"0"), "checkpoint is corrupted"),
        (b"{", "not readable"),
        (b'{"policyName":"None","machineState":{},"checksum":4236770233}', "differs from state checkpoint policy"),
    ],
)
def test_a_bad_memory_file_says_why(file: bytes, why: str) -> None:
    with pytest.raises(BadStateFile, match=why):
        memory_checkpoint.decode(file, policy="Static")


@pytest.mark.parametrize("text", ["", "0", "0-3,5", "1,3,5-7,63"])
def test_sets_of_cpus_are_ranges(text: str) -> None:
    assert cpu_text(read_cpu_text(text)) == text
