"""Claims and their volumes on one machine."""

from __future__ import annotations

from typing import Any

from tests.unit.box.world import Machine


def claim(name: str = "data", **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def volume(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def volume_of(machine: Machine, name: str = "data") -> Any:
    objects = machine.look().objects
    found = objects[f"api/v1/namespaces/shop/persistentvolumeclaims/{name}"]
    return objects[f"api/v1/persistentvolumes/{found['spec']['volumeName']}"]["spec"]


def test_a_claim_is_a_folder_below_the_state() -> None:
    machine = Machine(claim())
    assert volume_of(machine)["local"] == {"path": "/state/claims/shop/data"}
    assert [str(folder) for folder in machine.look().folders] == ["/state/claims/shop/data"]


def test_claim_and_volume_name_each_other() -> None:
    machine = Machine(claim())
    reference = volume_of(machine)["claimRef"]
    bound = machine.look().objects["api/v1/namespaces/shop/persistentvolumeclaims/data"]
    assert reference == {"namespace": "shop", "name": "data", "uid": bound["metadata"]["uid"]}
    assert bound["status"]["phase"] == "Bound"


def test_a_claim_takes_the_volume_that_it_names() -> None:
    machine = Machine(volume("disk", hostPath={"path": "/srv/disk"}), claim(volumeName="disk"))
    assert volume_of(machine)["hostPath"] == {"path": "/srv/disk"}
    assert machine.look().folders == ()


def test_a_claim_takes_a_free_volume_of_its_class_and_a_second_one_gets_a_folder() -> None:
    disk = volume("disk", hostPath={"path": "/srv/disk"}, storageClassName="fast")
    machine = Machine(disk, claim("a", storageClassName="fast"), claim("b", storageClassName="fast"))
    assert "hostPath" in volume_of(machine, "a")
    assert "local" in volume_of(machine, "b")


def test_a_volume_that_is_kept_for_a_claim_goes_to_no_other() -> None:
    kept = volume("disk", hostPath={"path": "/srv/disk"}, claimRef={"namespace": "shop", "name": "b"})
    machine = Machine(kept, claim("a"), claim("b"))
    assert "local" in volume_of(machine, "a")
    assert "hostPath" in volume_of(machine, "b")


def test_a_claim_that_cannot_be_bound_is_a_finding() -> None:
    step = Machine(claim(volumeName="none"), claim("raw", volumeMode="Block")).look()
    assert [finding.broken for finding in step.findings] == [True, False]
    assert "spec.volumeName: none: no free PersistentVolume" in step.findings[0].text
    assert "a folder is no block device" in step.findings[1].text


def test_the_claim_of_an_ephemeral_volume_belongs_to_its_pod() -> None:
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    pod = {"kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"volumes": volumes}}
    machine = Machine(pod)
    step = machine.look()
    owner = step.objects["api/v1/namespaces/shop/persistentvolumeclaims/web-scratch"]["metadata"]["ownerReferences"][0]
    assert owner["uid"] == machine.pods["shop", "web"].uid
    assert owner["controller"] is True
