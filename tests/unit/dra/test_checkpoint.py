"""dra_manager_state is the Go kubelet's."""

from __future__ import annotations

import pytest

from glasslet.dra.checkpoint import BadClaimFile, decode, encode
from glasslet.dra.claim_book import ClaimEntry
from glasslet.dra.driver_calls import ClaimId, PreparedDevice

GO = (
    rb'{"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",\"ClaimInfoStateList\":'
    rb"[{\"ClaimUID\":\"a2f1\",\"ClaimName\":\"gpu\",\"Namespace\":\"default\",\"PodUIDs\":"
    rb"{\"6f0dd0b6-5a3c-4c31-9b5e-0d3f6cf0a8f1\":{}},\"DriverState\":{\"gpu.example.com\":{\"Devices\":[{\"PoolName\":"
    rb"\"node-1\",\"DeviceName\":\"gpu-0\",\"RequestNames\":[\"gpu\"],\"CDIDeviceIDs\":[\"example.com/gpu=a2f1\"]}]}}}]}"
    rb'","Checksum":324202546}'
)
DEVICE = PreparedDevice(pool="node-1", device="gpu-0", requests=("gpu",), cdi_ids=("example.com/gpu=a2f1",))
ENTRY = ClaimEntry(
    id=ClaimId(namespace="default", name="gpu", uid="a2f1"),
    pods=frozenset(("6f0dd0b6-5a3c-4c31-9b5e-0d3f6cf0a8f1",)),
    devices={"gpu.example.com": (DEVICE,)},
)


def test_a_file_of_the_go_kubelet_is_read_and_written_byte_for_byte() -> None:
    # behaviours.md §24: "Files dra_manager_state ({"Data":"<JSON text>","Checksum":CRC-32 IEEE of Data}; inner kind
    # DRACheckpoint, checkpoint.dra.kubelet.k8s.io/v1, ClaimInfoStateList)"
    assert decode(GO) == (ENTRY,)
    assert encode([ENTRY]) == GO


def test_the_file_of_a_node_without_claims_is_the_go_kubelets() -> None:
    assert b'"Checksum":2361995144}' in encode([])
    first_start = encode([]).replace(b"[]", b"null").replace(b"2361995144", b"4010664294")
    assert decode(first_start) == ()


def test_a_claim_that_is_not_prepared_has_no_devices() -> None:
    entry = ClaimEntry(id=ENTRY.id, pods=ENTRY.pods, devices={"gpu.example.com": ()})
    assert rb"\"Devices\":null" in encode([entry])
    assert decode(encode([entry])) == (entry,)


def test_that_a_claim_is_prepared_is_not_remembered_over_a_restart() -> None:
    entry = ClaimEntry(id=ENTRY.id, pods=ENTRY.pods, devices=ENTRY.devices, prepared=True)
    assert decode(encode([entry])) == (ENTRY,)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", GO.replace(b"gpu-0", b"gpu-1"), GO[:-9], b"[" * 9999])
def test_a_damaged_file_is_refused(content: bytes) -> None:
    with pytest.raises(BadClaimFile):
        decode(content)
