"""Answers -> our model.

behaviours.md §30: "Answers without these are errors: sandbox id, metadata name, namespace, uid, created_at; container
id, metadata name, created_at, image, image_ref; image id and non-zero size".
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from glasslet.api.object import SandboxID
from glasslet.runtime.cri._generated import container_pb2, image_pb2, linux_pb2, pod_sandbox_pb2, runtime_pb2
from glasslet.runtime.cri.decode import (
    decode_container,
    decode_filesystem,
    decode_image,
    decode_listed_container,
    decode_listed_image,
    decode_listed_sandbox,
    decode_resources,
    decode_runtime_status,
    decode_sandbox,
)
from glasslet.runtime.cri.encode_linux import encode_resources
from glasslet.runtime.errors import RuntimeRejected
from glasslet.runtime.model import ContainerPhase, Image
from tests.unit.runtime.cri.test_encode import RESOURCES

BOX = SandboxID("s1")
NANOSECONDS = 1_700_000_000_123_456_789
MOMENT = datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)


def sandbox() -> pod_sandbox_pb2.PodSandboxStatus:
    status = pod_sandbox_pb2.PodSandboxStatus(id="s1", created_at=NANOSECONDS, labels={"l": "1"}, runtime_handler="h")
    status.metadata.name, status.metadata.namespace, status.metadata.uid, status.metadata.attempt = "p", "d", "u", 2
    status.network.ip = "10.0.0.2"
    status.network.additional_ips.add(ip="fd00::2")
    return status


def container() -> container_pb2.ContainerStatus:
    status = container_pb2.ContainerStatus(
        id="c1", created_at=NANOSECONDS, image_ref="sha256:1", state=container_pb2.CONTAINER_EXITED, exit_code=3
    )
    status.metadata.name = "main"
    status.image.image = "busybox"
    return status


def test_a_sandbox_keeps_all_its_addresses_in_order() -> None:
    seen = decode_sandbox(sandbox())

    assert seen.ips == ("10.0.0.2", "fd00::2")
    assert (seen.attempt, seen.ready, seen.created_at, seen.runtime_handler) == (2, True, MOMENT, "h")


def test_the_host_network_is_seen() -> None:
    status = sandbox()
    status.network.Clear()
    status.linux.namespaces.options.network = linux_pb2.NODE

    seen = decode_sandbox(status)

    assert (seen.host_network, seen.ips) == (True, ())


@pytest.mark.parametrize("field", ["id", "metadata.name", "metadata.namespace", "metadata.uid", "created_at"])
def test_a_sandbox_lacking_a_mandatory_field_is_an_error(field: str) -> None:
    status = sandbox()
    *path, last = field.split(".")
    holder: Any = getattr(status, path[0]) if path else status
    holder.ClearField(last)

    with pytest.raises(RuntimeRejected, match=f"lacks {field}"):
        decode_sandbox(status)


@pytest.mark.parametrize("field", ["id", "metadata.name", "created_at", "image.image", "image_ref"])
def test_a_container_lacking_a_mandatory_field_is_an_error(field: str) -> None:
    status = container()
    *path, last = field.split(".")
    holder: Any = getattr(status, path[0]) if path else status
    holder.ClearField(last)

    with pytest.raises(RuntimeRejected, match=f"lacks {field}"):
        decode_container(status, BOX)


def test_what_is_half_made_does_not_spoil_a_list() -> None:
    made = decode_listed_container(container_pb2.Container(id="c"))
    box = decode_listed_sandbox(pod_sandbox_pb2.PodSandbox(id="s"))
    assert (made.id, box.id, made.created_at) == ("c", "s", box.created_at)


def test_times_that_did_not_come_are_none() -> None:
    seen = decode_container(container(), BOX)

    assert (seen.created_at, seen.started_at, seen.finished_at) == (MOMENT, None, None)


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        (container_pb2.CONTAINER_CREATED, ContainerPhase.CREATED),
        (container_pb2.CONTAINER_RUNNING, ContainerPhase.RUNNING),
        (container_pb2.CONTAINER_EXITED, ContainerPhase.EXITED),
        (container_pb2.CONTAINER_UNKNOWN, ContainerPhase.UNKNOWN),
        (77, ContainerPhase.UNKNOWN),
    ],
)
def test_states_have_phases_and_new_states_are_unknown(state: int, phase: ContainerPhase) -> None:
    status = container()
    status.state = container_pb2.ContainerState.ValueType(state)

    assert decode_container(status, BOX).phase is phase


def test_user_and_resources_are_none_where_the_runtime_says_nothing() -> None:
    seen = decode_container(container(), BOX)

    assert (seen.user, seen.resources) == (None, None)


def test_user_and_resources_are_read() -> None:
    status = container()
    status.user.linux.uid, status.user.linux.gid = 1, 2
    status.user.linux.supplemental_groups.append(3)
    status.resources.linux.cpu_shares = 512

    seen = decode_container(status, BOX)

    assert seen.user == (1, 2, (3,))
    assert seen.resources is not None
    assert seen.resources.cpu_shares == 512


def test_resources_survive_both_ways() -> None:
    assert decode_resources(encode_resources(RESOURCES)) == RESOURCES


def test_lists_need_no_more_than_an_id_and_a_birth() -> None:
    listed = decode_listed_container(container_pb2.Container(id="c1", pod_sandbox_id="s1", created_at=NANOSECONDS))
    box = decode_listed_sandbox(pod_sandbox_pb2.PodSandbox(id="s1", created_at=NANOSECONDS))

    assert (listed.id, listed.sandbox_id, box.id) == ("c1", "s1", "s1")


def test_an_image_says_its_user_as_number_or_name() -> None:
    numbered = image_pb2.Image(id="i", size=1, uid=linux_pb2.Int64Value(value=0))

    assert decode_image(numbered).uid == 0
    assert decode_image(image_pb2.Image(id="i", size=1, username="nobody")).uid is None


@pytest.mark.parametrize(
    ("image", "field"), [(image_pb2.Image(size=1), "image.id"), (image_pb2.Image(id="i"), "image.size")]
)
def test_an_image_lacking_id_or_size_is_an_error(image: image_pb2.Image, field: str) -> None:
    with pytest.raises(RuntimeRejected, match=f"lacks {field}"):
        decode_image(image)


def test_a_half_pulled_image_does_not_spoil_the_list() -> None:
    assert decode_listed_image(image_pb2.Image(id="i")) == Image(id="i")


def test_the_runtime_tells_conditions_handlers_and_features() -> None:
    answer = runtime_pb2.StatusResponse()
    answer.status.conditions.add(type="RuntimeReady", status=True)
    answer.status.conditions.add(type="NetworkReady", status=False, reason="NoCNI", message="no config")
    handler = answer.runtime_handlers.add(name="kata")
    handler.features.user_namespaces = True
    answer.features.supplemental_groups_policy = True

    seen = decode_runtime_status(answer)

    assert [(c.type, c.status, c.reason) for c in seen.conditions] == [
        ("RuntimeReady", True, ""),
        ("NetworkReady", False, "NoCNI"),
    ]
    assert [(h.name, h.user_namespaces, h.recursive_read_only_mounts) for h in seen.handlers] == [("kata", True, False)]
    assert seen.supplemental_groups_policy


def test_a_runtime_that_does_not_tell_whether_it_is_ready_is_an_error() -> None:
    with pytest.raises(RuntimeRejected, match="RuntimeReady and NetworkReady"):
        decode_runtime_status(runtime_pb2.StatusResponse())


def test_filesystem_usage_is_read() -> None:
    usage = image_pb2.FilesystemUsage(timestamp=NANOSECONDS)
    usage.fs_id.mountpoint, usage.used_bytes.value, usage.inodes_used.value = "/var", 10, 2

    seen = decode_filesystem(usage)

    assert (seen.mountpoint, seen.used_bytes, seen.inodes_used, seen.timestamp) == ("/var", 10, 2, MOMENT)
