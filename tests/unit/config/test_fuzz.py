"""Two hundred damaged configurations: never anything but problems, and never the text of a secret."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from tests.unit.config.files import HEAD, STANDALONE

from glasslet.config.check import check
from glasslet.config.document import Document, DocumentError
from glasslet.config.documents import load_documents
from glasslet.config.flags.table import FLAGS
from glasslet.config.loading import load
from glasslet.config.machine import MachineFacts

VALID = (
    HEAD
    + STANDALONE
    + """\
staticPodURLHeader: {Authorization: [hunter2]}
evictionHard: {memory.available: 5%, nodefs.available: 1Gi}
featureGates: {MemoryQoS: true, AllAlpha: false}
logging: {format: json, verbosity: 3, options: {json: {infoBufferSize: "0"}}}
reservedMemory:
- numaNode: 0
  limits: {memory: 1Gi}
registerWithTaints: &taints
- {key: a, value: b, effect: NoSchedule}
shutdownGracePeriodByPodPriority:
- {priority: 5, shutdownGracePeriodSeconds: 5}
tracing: {endpoint: "localhost:1", samplingRatePerMillion: 5}
userNamespaces: {idsPerPod: 65536}
clusterDNS: [10.0.0.10]
syncFrequency: 1m30s
maxPods: 110
"""
)
PIECES = [
    b"\x00",
    b"\xff",
    b"\xc3\x28",
    b"&a ",
    b"*a",
    b"*taints",
    b"<<: *taints",
    b"!!binary ",
    b"!!python/none ",
    b"[",
    b"{",
    b"]",
    b"}",
    b"- ",
    b"? ",
    b": ",
    b"\n---\n",
    b"\n...\n",
    b"\t",
    b"%YAML 9\n",
    b".nan",
    b"-.inf",
    b"1e999",
    b"99999999999999999999",
    b"null",
    b"~",
    b"''",
    b'"',
    b"'",
    b"#",
    b"|\n",
    b">\n",
    b"[" * 200,
    b"{a: " * 200,
    b"- " * 300,
    b"\xef\xbb\xbf",
    b"\\ud800",
    b"0x",
    b"1_0",
    b"=",
    b"-1",
    b"0",
    b"true",
    b"[[1]]",
    b"{}",
    b"[]",
    "日本".encode(),
    b"\x85",
    b"\xe2\x80\xa8",
]
SEEDS = range(200)


def damaged(seed: int) -> bytes:
    """The valid configuration with a few pieces put in, cut out, doubled or swapped."""
    dice = random.Random(seed)
    data = bytearray(VALID.encode())
    for _ in range(dice.randint(1, 5)):
        place = dice.randrange(len(data) + 1)
        length = dice.choice([0, 1, 3, 20, 200])
        match dice.randrange(4):
            case 0:
                data[place:place] = dice.choice(PIECES)
            case 1:
                del data[place : place + length]
            case 2:
                data[place:place] = data[place : place + length]
            case _:
                line = data.find(b": ", place)
                end = data.find(b"\n", line)
                if 0 <= line < end:
                    data[line + 2 : end] = dice.choice(PIECES)
    return bytes(data)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_configuration_is_reported_and_never_crashes(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "k.conf"
    path.write_bytes(damaged(seed))
    as_file = check([f"--config={path}"], machine=MachineFacts())
    as_drop_in = load([f"--config-dir={tmp_path}"], cgroup_v2=True)
    for problem in [*as_file.problems, *as_drop_in.problems]:
        assert problem.message
        assert problem.origin
    shown = [row for row in as_file.effective if row.path.startswith("staticPodURLHeader")]
    assert all("hunter2" not in str(row.value) for row in shown)


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_documents_load_or_raise_one_kind_of_error(seed: int) -> None:
    documents: list[Document] = []
    with contextlib.suppress(DocumentError):
        documents = load_documents(damaged(seed), origin="f")
    assert all(document.line_of("maxPods") >= 1 for document in documents)


def test_random_command_lines_never_crash() -> None:
    dice = random.Random(7)
    values = [
        "",
        "x",
        "-1",
        "0",
        "1",
        "true",
        "a=b",
        "a<b",
        "a:b",
        "1m",
        "99999999999999999999",
        ",",
        "=",
        "\x00",
        "日本",
        "a=b:c",
        ";",
        "1:2",
    ]
    for _ in range(500):
        argv = [
            f"--{dice.choice([*FLAGS, 'nonsense', '', '-'])}{dice.choice(['', '=' + dice.choice(values)])}"
            for _ in range(dice.randint(1, 6))
        ]
        argv = [word for word in argv if not word.startswith(("--config", "--kubeconfig"))]
        loaded = load([*argv, *dice.choices(values, k=dice.randint(0, 1))], cgroup_v2=True)
        assert all(problem.message for problem in loaded.problems)
