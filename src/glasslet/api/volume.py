"""Volumes of a pod and their sources (core/v1 at v1.34)."""

from __future__ import annotations

from msgspec import field

from glasslet.api.env import ObjectFieldSelector, ResourceFieldSelector
from glasslet.api.meta import LabelSelector, ObjectMeta
from glasslet.api.object import Object
from glasslet.api.quantity import Quantity


class AWSElasticBlockStoreVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.AWSElasticBlockStoreVolumeSource`."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AzureDiskVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.AzureDiskVolumeSource`."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    caching_mode: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: str | None = None


class AzureFileVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.AzureFileVolumeSource`."""

    secret_name: str = ""
    share_name: str = ""
    read_only: bool = False


class LocalObjectReference(Object, frozen=True, kw_only=True):
    """`core/v1.LocalObjectReference`."""

    name: str = ""


class CSIVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.CSIVolumeSource`."""

    driver: str = ""
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] = {}
    node_publish_secret_ref: LocalObjectReference | None = None


class CephFSVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.CephFSVolumeSource`."""

    monitors: tuple[str, ...] = ()
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class CinderVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.CinderVolumeSource`."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class KeyToPath(Object, frozen=True, kw_only=True):
    """`core/v1.KeyToPath`."""

    key: str = ""
    path: str = ""
    mode: int | None = None


class ConfigMapVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.ConfigMapVolumeSource`."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: int | None = None
    optional: bool | None = None


class DownwardAPIVolumeFile(Object, frozen=True, kw_only=True):
    """`core/v1.DownwardAPIVolumeFile`."""

    path: str = ""
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: int | None = None


class DownwardAPIVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.DownwardAPIVolumeSource`."""

    items: tuple[DownwardAPIVolumeFile, ...] = ()
    default_mode: int | None = None


class EmptyDirVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.EmptyDirVolumeSource`."""

    medium: str = ""
    size_limit: Quantity | None = None


class TypedLocalObjectReference(Object, frozen=True, kw_only=True):
    """`core/v1.TypedLocalObjectReference`."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""


class TypedObjectReference(Object, frozen=True, kw_only=True):
    """`core/v1.TypedObjectReference`."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


class VolumeResourceRequirements(Object, frozen=True, kw_only=True):
    """`core/v1.VolumeResourceRequirements`."""

    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}


class PersistentVolumeClaimSpec(Object, frozen=True, kw_only=True):
    """`core/v1.PersistentVolumeClaimSpec`."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(Object, frozen=True, kw_only=True):
    """`core/v1.PersistentVolumeClaimTemplate`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.EphemeralVolumeSource`."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class FCVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.FCVolumeSource`."""

    target_wwns: tuple[str, ...] = field(default=(), name="targetWWNs")
    lun: int | None = None
    fs_type: str = ""
    read_only: bool = False
    wwids: tuple[str, ...] = ()


class FlexVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.FlexVolumeSource`."""

    driver: str = ""
    fs_type: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False
    options: dict[str, str] = {}


class FlockerVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.FlockerVolumeSource`."""

    dataset_name: str = ""
    dataset_uuid: str = field(default="", name="datasetUUID")


class GCEPersistentDiskVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.GCEPersistentDiskVolumeSource`."""

    pd_name: str = ""
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class GitRepoVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.GitRepoVolumeSource`."""

    repository: str = ""
    revision: str = ""
    directory: str = ""


class GlusterfsVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.GlusterfsVolumeSource`."""

    endpoints: str = ""
    path: str = ""
    read_only: bool = False


class HostPathVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.HostPathVolumeSource`."""

    path: str = ""
    type: str | None = None


class ISCSIVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.ISCSIVolumeSource`."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: tuple[str, ...] = ()
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: LocalObjectReference | None = None
    initiator_name: str | None = None


class ImageVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.ImageVolumeSource`."""

    reference: str = ""
    pull_policy: str = ""


class NFSVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.NFSVolumeSource`."""

    server: str = ""
    path: str = ""
    read_only: bool = False


class PersistentVolumeClaimVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.PersistentVolumeClaimVolumeSource`."""

    claim_name: str = ""
    read_only: bool = False


class PhotonPersistentDiskVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.PhotonPersistentDiskVolumeSource`."""

    pd_id: str = field(default="", name="pdID")
    fs_type: str = ""


class PortworxVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.PortworxVolumeSource`."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class ClusterTrustBundleProjection(Object, frozen=True, kw_only=True):
    """`core/v1.ClusterTrustBundleProjection`."""

    name: str | None = None
    signer_name: str | None = None
    label_selector: LabelSelector | None = None
    optional: bool | None = None
    path: str = ""


class ConfigMapProjection(Object, frozen=True, kw_only=True):
    """`core/v1.ConfigMapProjection`."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class DownwardAPIProjection(Object, frozen=True, kw_only=True):
    """`core/v1.DownwardAPIProjection`."""

    items: tuple[DownwardAPIVolumeFile, ...] = ()


class PodCertificateProjection(Object, frozen=True, kw_only=True):
    """`core/v1.PodCertificateProjection`."""

    signer_name: str = ""
    key_type: str = ""
    max_expiration_seconds: int | None = None
    credential_bundle_path: str = ""
    key_path: str = ""
    certificate_chain_path: str = ""


class SecretProjection(Object, frozen=True, kw_only=True):
    """`core/v1.SecretProjection`."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class ServiceAccountTokenProjection(Object, frozen=True, kw_only=True):
    """`core/v1.ServiceAccountTokenProjection`."""

    audience: str = ""
    expiration_seconds: int | None = None
    path: str = ""


class VolumeProjection(Object, frozen=True, kw_only=True):
    """`core/v1.VolumeProjection`."""

    secret: SecretProjection | None = None
    downward_api: DownwardAPIProjection | None = field(default=None, name="downwardAPI")
    config_map: ConfigMapProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    pod_certificate: PodCertificateProjection | None = None


class ProjectedVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.ProjectedVolumeSource`."""

    sources: tuple[VolumeProjection, ...] = ()
    default_mode: int | None = None


class QuobyteVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.QuobyteVolumeSource`."""

    registry: str = ""
    volume: str = ""
    read_only: bool = False
    user: str = ""
    group: str = ""
    tenant: str = ""


class RBDVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.RBDVolumeSource`."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    keyring: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class ScaleIOVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.ScaleIOVolumeSource`."""

    gateway: str = ""
    system: str = ""
    secret_ref: LocalObjectReference | None = None
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: str = ""
    volume_name: str = ""
    fs_type: str = ""
    read_only: bool = False


class SecretVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.SecretVolumeSource`."""

    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: int | None = None
    optional: bool | None = None


class StorageOSVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.StorageOSVolumeSource`."""

    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class VsphereVirtualDiskVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.VsphereVirtualDiskVolumeSource`."""

    volume_path: str = ""
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = field(default="", name="storagePolicyID")


class Volume(Object, frozen=True, kw_only=True):
    """`core/v1.Volume`."""

    name: str = ""
    host_path: HostPathVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = field(default=None, name="downwardAPI")
    fc: FCVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = field(default=None, name="scaleIO")
    storageos: StorageOSVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None
