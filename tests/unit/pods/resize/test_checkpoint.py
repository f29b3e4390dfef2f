"""The files of resized pods, in the Go kubelet's form."""

from __future__ import annotations

import json

import pytest

from glasslet.api.container import ResourceRequirements
from glasslet.api.object import PodUID
from glasslet.api.quantity import Quantity
from glasslet.pods.resize.checkpoint import DamagedCheckpoint, checksum, dump, load

ONE = {
    PodUID("u1"): {
        "main": ResourceRequirements(
            requests={"cpu": Quantity.parse("100m")}, limits={"memory": Quantity.parse("64Mi")}
        )
    }
}


def test_what_was_dumped_is_loaded() -> None:
    assert load(dump(ONE)) == ONE


def test_the_form_is_upstreams() -> None:
    """behaviours.md §26: `{"data":"{\\"entries\\":{uid:{\\"ContainerResources\\":{name:{limits,requests}}}}}",...}`."""
    file = json.loads(dump(ONE))
    assert set(file) == {"data", "checksum"}
    main = {"limits": {"memory": "64Mi"}, "requests": {"cpu": "100m"}}
    assert json.loads(file["data"]) == {"entries": {"u1": {"ContainerResources": {"main": main}}}}


def test_the_checksum_is_fnv_1a_over_a_marked_string() -> None:
    """behaviours.md §26: "checksum = FNV-1a 32 over `(string)` + data." """
    value = 2166136261
    for byte in b"(string){}":
        value = ((value ^ byte) * 16777619) % 2**32
    assert checksum("{}") == value


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage",
        b"[]",
        b'{"data":"{}","checksum":1}',
        dump(ONE)[:-5],
        dump(ONE).replace(b"100m", b"900m"),
        json.dumps(
            {"data": '{"entries":{"u":{"ContainerResources":{"c":{"limits":{"cpu":"many"}}}}}}', "checksum": 0}
        ).encode(),
    ],
)
def test_anything_else_is_damaged(content: bytes) -> None:
    with pytest.raises(DamagedCheckpoint):
        load(content)


def test_no_pods_is_a_good_file() -> None:
    assert load(dump({})) == {}
