from __future__ import annotations

from typing import Any

import pytest

from glasslet.api.codec import convert
from glasslet.api.volume import Volume
from glasslet.volumes.sources import used_volumes, volume_type
from tests.builders.podspec import pod_of


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"emptyDir": {}}, "emptyDir"),
        ({"hostPath": {"path": "/x"}}, "hostPath"),
        ({"configMap": {"name": "c"}}, "configMap"),
        ({"downwardAPI": {}}, "downwardAPI"),
        ({"persistentVolumeClaim": {"claimName": "c"}}, "persistentVolumeClaim"),
        ({"csi": {"driver": "d"}}, "csi"),
        ({}, "emptyDir"),
    ],
)
def test_a_volume_is_of_the_type_that_its_manifest_names(source: dict[str, Any], kind: str) -> None:
    assert volume_type(convert({"name": "v"} | source, Volume)) == kind


@pytest.mark.parametrize("group", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize("use", [{"volumeMounts": [{"name": "a"}]}, {"volumeDevices": [{"name": "a"}]}])
def test_only_volumes_that_some_container_uses_count(group: str, use: dict[str, Any]) -> None:
    user = {"name": "user", "image": "busybox"} | use
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]
    spec: dict[str, Any] = {} if group == "containers" else {group: [user]}
    pod = pod_of(*([user] if group == "containers" else []), volumes=volumes, **spec)
    assert [volume.name for volume in used_volumes(pod)] == ["a"]
