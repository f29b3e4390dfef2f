"""Types of volumes that left the tree become volumes of CSI drivers."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.api.codec import convert
from glasslet.api.persistent_volume import CSIPersistentVolumeSource, PersistentVolume, SecretReference, source_of
from glasslet.api.volume import Volume
from glasslet.volumes.csi.migration import DRIVERS, migrated
from glasslet.volumes.csi.node_entries import MIGRATED_PLUGINS
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest
from tests.builders.podspec import pod_of

AWS = {"volumeID": "vol-1", "fsType": "ext4"}


def inline(kind: str, /, **source: Any) -> VolumeRequest:
    """The translated request for a pod's own volume `v`."""
    return migrated(VolumeRequest(pod=pod_of(), volume=convert({"name": "v", kind: source}, Volume)))


def claimed(kind: str, source: dict[str, Any], *, meta: dict[str, Any] | None = None, **spec: Any) -> VolumeRequest:
    """The same behind a claim."""
    whole = {"metadata": {"name": "pv1", **(meta or {})}, "spec": {kind: source, **spec}}
    request = VolumeRequest(
        pod=pod_of(),
        volume=convert({"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, Volume),
        persistent=convert(whole, PersistentVolume),
    )
    return migrated(request)


def source(request: VolumeRequest) -> CSIPersistentVolumeSource:
    assert request.persistent is not None
    assert source_of(request.persistent) == "csi"
    found = request.persistent.spec.csi
    assert found is not None
    return found


def test_there_is_a_driver_for_each_plugin_that_csinode_calls_migrated() -> None:
    assert len(DRIVERS) == len(MIGRATED_PLUGINS.split(","))


def test_another_type_stays_as_it_is() -> None:
    request = VolumeRequest(pod=pod_of(), volume=convert({"name": "v", "nfs": {"server": "s", "path": "/"}}, Volume))
    assert migrated(request) is request


@pytest.mark.parametrize(
    ("kind", "given", "driver", "handle", "attributes"),
    [
        ("awsElasticBlockStore", AWS, "ebs.csi.aws.com", "vol-1", {"partition": "0"}),
        (
            "awsElasticBlockStore",
            {"volumeID": "aws://us-east-1a/vol-2", "partition": 3},
            "ebs.csi.aws.com",
            "vol-2",
            {"partition": "3"},
        ),
        ("awsElasticBlockStore", {"volumeID": "aws:///vol-3"}, "ebs.csi.aws.com", "vol-3", {"partition": "0"}),
        (
            "azureDisk",
            {"diskName": "d", "diskURI": "/subscriptions/s/d", "cachingMode": "None", "kind": "Managed"},
            "disk.csi.azure.com",
            "/subscriptions/s/d",
            {"kind": "managed", "cachingmode": "None"},
        ),
        ("cinder", {"volumeID": "c1"}, "cinder.csi.openstack.org", "c1", {}),
        (
            "gcePersistentDisk",
            {"pdName": "d1"},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d1",
            {"partition": ""},
        ),
        ("portworxVolume", {"volumeID": "p1"}, "pxd.portworx.com", "p1", {}),
        (
            "vsphereVolume",
            {"volumePath": "[ds] a/b.vmdk", "storagePolicyName": "gold"},
            "csi.vsphere.vmware.com",
            "[ds] a/b.vmdk",
            {"storagepolicyname": "gold"},
        ),
    ],
)
def test_a_type_becomes_a_volume_of_its_driver(
    kind: str, given: dict[str, Any], driver: str, handle: str, attributes: dict[str, str]
) -> None:
    for found in (source(inline(kind, **given)), source(claimed(kind, given))):
        assert (found.driver, found.volume_handle, found.volume_attributes) == (driver, handle, attributes)
        assert found.fs_type == given.get("fsType", "")


def test_a_pods_own_volume_has_a_name_that_is_a_directory_and_no_claim() -> None:
    request = inline("azureDisk", diskName="d", diskURI="/subscriptions/s/d", readOnly=True)
    assert request.name == "~subscriptions~s~d"
    assert request.read_only
    assert request.persistent is not None
    assert request.persistent.spec.claim_ref is None
    assert inline("awsElasticBlockStore", **AWS).name == "ebs.csi.aws.com-vol-1"


def test_a_share_gets_its_secret_and_an_id_that_is_its_own() -> None:
    given = {"secretName": "azure-storage-account-acc-secret", "shareName": "s", "secretNamespace": "vault"}
    annotations = {"kubernetes.io/azure-file-resource-group": "rg"}
    found = source(claimed("azureFile", given, meta={"annotations": annotations}))
    assert found.volume_handle == "rg#acc#s#pv1#vault"
    assert found.volume_attributes == {"sharename": "s"}
    assert found.node_stage_secret_ref == SecretReference(name=given["secretName"], namespace="vault")
    own = source(inline("azureFile", secretName="plain", shareName="s"))
    assert own.volume_handle == "#plain#s#v#default"


def test_a_share_of_no_namespace_is_refused() -> None:
    with pytest.raises(VolumeProblem, match="could not find a secret namespace"):
        claimed("azureFile", {"secretName": "x", "shareName": "s"})


@pytest.mark.parametrize(
    ("zone", "where"),
    [("europe-west1-b", "zones/europe-west1-b"), ("europe-west1-b__europe-west1-c", "regions/europe-west1")],
)
def test_a_disk_is_looked_for_where_its_label_says(zone: str, where: str) -> None:
    labels = {"topology.kubernetes.io/zone": zone}
    found = source(claimed("gcePersistentDisk", {"pdName": "d"}, meta={"labels": labels}))
    assert found.volume_handle == f"projects/UNSPECIFIED/{where}/disks/d"


@pytest.mark.parametrize(
    ("modes", "used"),
    [
        (["ReadWriteMany"], ("ReadWriteOnce",)),
        (["ReadOnlyMany", "ReadWriteOnce"], ("ReadWriteOnce",)),
        (["ReadOnlyMany"], ("ReadOnlyMany",)),
    ],
)
def test_a_disk_that_is_written_is_one_nodes(modes: list[str], used: tuple[str, ...]) -> None:
    request = claimed("gcePersistentDisk", {"pdName": "d"}, accessModes=modes)
    assert request.persistent is not None
    assert request.persistent.spec.access_modes == used


def test_secrets_of_portworx_are_those_of_its_annotations() -> None:
    notes = {"openstorage.io/auth-secret-name": "token", "openstorage.io/auth-secret-namespace": "vault"}
    found = source(claimed("portworxVolume", {"volumeID": "p"}, meta={"annotations": notes}))
    secret = SecretReference(name="token", namespace="vault")
    assert (found.node_stage_secret_ref, found.node_publish_secret_ref, found.node_expand_secret_ref) == (secret,) * 3


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        ("azureDisk", {"diskName": "d", "diskURI": "u", "kind": "Dedicated"}, "is not supported in csi migration"),
        ("awsElasticBlockStore", {"volumeID": "aws://z/disk"}, "Invalid format for AWS volume"),
    ],
)
def test_what_no_driver_serves_is_refused(kind: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(VolumeProblem, match=words):
        inline(kind, **given)
