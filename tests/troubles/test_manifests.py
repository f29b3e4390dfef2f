"""Manifests that no pod comes of: each file is one trouble, with line and field."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from glasslet.answers.states import Rule
from tests.fakes.agent import busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.troubles.table import Plain, Trouble, chosen, each_chosen, fits, judge
from tests.troubles.world import PATIENCE, World, standalone_world

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

AREA = "Manifests"
HEAD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec:\n  containers:\n  - {name: main, image: busybox"
TEXTS = {
    "manifest-syntax": "apiVersion: v1\nkind: Pod\n  metadata: {\n",
    "manifest-empty": "\n",
    "manifest-kind": "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n",
    "manifest-no-name": HEAD.replace("{name: NAME}", "{}") + "}\n",
    "manifest-value": HEAD + "}\n  dnsPolicy: Mine\n",
    "manifest-type": HEAD + ", ports: [{containerPort: eighty}]}\n",
    "manifest-secret": HEAD + ", envFrom: [{secretRef: {name: s}}]}\n",
}


def broken(name: str, made: str, *says: str, quick: bool = False) -> Trouble:
    """A file that is put among the manifests as it is in TEXTS."""
    place = f"manifests/{name}.yaml"
    return Trouble(name=name, made=made, rule=Rule.BROKEN_MANIFEST, says=(place, *says), quick=quick, dated=False)


TROUBLES = (
    broken("manifest-syntax", "the file is no YAML", "line "),
    broken("manifest-empty", "the file is empty", "empty"),
    broken("manifest-kind", "the object is no Pod", "Service"),
    broken("manifest-no-name", "the pod has no name", "metadata.name"),
    broken("manifest-value", "a field has a value that does not exist", "spec.dnsPolicy", '"Mine"', quick=True),
    broken("manifest-type", "a field has a value of another type", "containerPort"),
    broken("manifest-secret", "a static pod refers to a Secret", "secret"),
)


@pytest.fixture(scope="module")
def world(containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with standalone_world(containerd, tmp_path_factory.mktemp("m")) as made:
        for trouble in chosen(TROUBLES):
            made.agent.put(TEXTS[trouble.name].replace("NAME", trouble.name), f"{trouble.name}.yaml")
        made.agent.put(busybox_pod("well"))
        yield made


def of_file(world: World, trouble: Trouble) -> Plain | None:
    """The verdict on the trouble's file, None while there is none."""
    troubles = (world.ask("/why") or {}).get("troubles", [])
    return next((one["verdict"] for one in troubles if one["verdict"]["name"].endswith(f"/{trouble.name}.yaml")), None)


@each_chosen(TROUBLES)
def test_a_broken_manifest_is_a_trouble_of_the_node(world: World, trouble: Trouble) -> None:
    until = time.monotonic() + PATIENCE
    while (verdict := of_file(world, trouble)) is None or not fits(trouble, verdict):
        assert time.monotonic() < until, verdict
        time.sleep(0.2)
    judge(trouble, verdict, has_run=False)
