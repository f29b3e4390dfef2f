"""The image of sandboxes, from what a runtime says of its configuration."""

from __future__ import annotations

import pytest

from glasslet.runtime.cri._generated import runtime_pb2
from glasslet.runtime.cri.decode import decode_sandbox_image


@pytest.mark.parametrize(
    ("info", "image"),
    [
        ({"config": '{"sandboxImage": "registry.k8s.io/pause:3.10", "containerd": {}}'}, "registry.k8s.io/pause:3.10"),
        ({"config": '{"containerd": {}}'}, ""),
        ({"config": '{"sandboxImage": 3}'}, ""),
        ({"config": "[]"}, ""),
        ({"config": "{"}, ""),
        ({}, ""),
    ],
)
def test_it_is_found_where_containerd_has_it_and_nowhere_else(info: dict[str, str], image: str) -> None:
    assert decode_sandbox_image(runtime_pb2.StatusResponse(info=info)) == image
