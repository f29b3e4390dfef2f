"""A volume in words: what it is made of, and the cause of its last error. Pure."""

from __future__ import annotations

import re
from typing import Final

from glasslet.api.pod import Pod
from glasslet.api.volume import Volume
from glasslet.glass.verdicts.causes import Cause

_FAILED: Final = re.compile(r'^\w+\.\w+ failed for volume "(?P<name>[^"]+)" : (?P<why>.*)$', re.DOTALL)
_MOUNT: Final = re.compile(
    r"mount failed: (?P<status>[^\n]*)\nMounting command: [^\n]*\nMounting arguments: [^\n]*\nOutput: (?P<output>.*)$",
    re.DOTALL,
)
_CLAIM: Final = re.compile(
    r"unmounted volumes=\[(?P<name>[^\]\s]+).*error processing PVC (?P<claim>\S+): (?P<why>.*)$", re.DOTALL
)
_PLAIN: Final = (
    (r'persistentvolumeclaims "[^"]*" not found', "the claim does not exist"),
    (r"PVC is not bound", "the claim is not bound to a PersistentVolume yet"),
    (r"configmap references non-existent config key: (?P<key>\S+)", "its ConfigMap has no key {key}"),
    (r"references non-existent secret key: (?P<key>\S+)", "its Secret has no key {key}"),
    (
        r'failed to fetch token: serviceaccounts "(?P<key>[^"]*)" not found',
        "there is no token, because ServiceAccount {key} does not exist",
    ),
    (r"failed to fetch token: (?P<key>.*)", "the API server gives no token: {key}"),
    (
        r"not supported by driver (?P<key>\S+) \(no CSIDriver object\)",
        "the cluster has no CSIDriver object {key}, and so no volumes of pods' own from it",
    ),
    (
        r"driver name (?P<key>\S+) not found in the list of registered CSI drivers",
        "CSI driver {key} is not registered on this node",
    ),
)
"""Causes in the Go kubelet's words, and the same in plain ones."""
_HINTS: Final = (
    (
        r"hostPath type check failed: (?P<path>\S+) is not",
        "create {path} on the node, or correct the volume's path and type",
    ),
    (
        r"unknown filesystem type '(?P<path>[^']*)'",
        "install what mounts {path} on the node (its mount helper and module)",
    ),
    (r"no volume plugin matched", "use a volume type that this node supports (docs/volumes.md)"),
    (r'persistentvolumeclaims "(?P<path>[^"]*)" not found', "create claim {path}, or correct claimName"),
    (
        r'serviceaccounts "(?P<path>[^"]*)" not found',
        "create ServiceAccount {path} in the pod's namespace, or correct serviceAccountName",
    ),
    (
        r"failed to fetch token: .*forbidden",
        "see why the API server refuses the token: rights of system:nodes, admission policies and webhooks",
    ),
    (r"no CSIDriver object", "install that CSI driver: its CSIDriver object comes with it"),
    (
        r"list of registered CSI drivers",
        "install that CSI driver on the node, or use another type of volume",
    ),
    (
        r"fetching Node\w+SecretRef (?P<path>\S+) failed",
        "create Secret {path}, or correct the volume's reference to it (that of its StorageClass, for volumes to come)",
    ),
    (
        r"is not attached according to the node's status",
        "see the VolumeAttachment (kubectl get volumeattachments) and the log of the driver's external-attacher",
    ),
    (
        r'volume mode "(?P<path>\w+)" not supported by driver',
        "add {path} to volumeLifecycleModes of the driver's CSIDriver object, if the driver serves such volumes",
    ),
    (r"ReadWriteOncePod access mode", "delete the other pod that has the volume, or wait for its end"),
    (r"not bound|unbound", "bind the claim: check its StorageClass, and that a fitting PersistentVolume exists"),
    (r"[Cc]onnection refused|No route to host|timed out", "check the storage server and the connection to it"),
    (
        r"Read-only file system",
        "see in the kernel's log (dmesg) why that disk is read-only, then make it writable (mount -o remount,rw)",
    ),
    (r"No space left", "free space on the disk that it names"),
)


def source_words(volume: Volume) -> str:
    """What the volume is made of: `hostPath /data`, `ConfigMap settings`, `nfs 10.0.0.1:/export`; "" if unknown."""
    if volume.host_path is not None:
        return f"hostPath {volume.host_path.path}"
    if volume.empty_dir is not None:
        return "emptyDir in memory" if volume.empty_dir.medium == "Memory" else "emptyDir"
    if volume.config_map is not None:
        return f"ConfigMap {volume.config_map.name}"
    if volume.secret is not None:
        return f"Secret {volume.secret.secret_name}"
    if volume.persistent_volume_claim is not None:
        return f"claim {volume.persistent_volume_claim.claim_name}"
    if volume.nfs is not None:
        return f"nfs {volume.nfs.server}:{volume.nfs.path}"
    if volume.iscsi is not None:
        return f"iscsi {volume.iscsi.target_portal} {volume.iscsi.iqn}"
    if volume.csi is not None:
        return f"CSI driver {volume.csi.driver}"
    if volume.image is not None:
        return f"image {volume.image.reference}"
    if volume.projected is not None:
        return "projected: " + ", ".join(_projected(volume))
    if volume.downward_api is not None:
        return "downwardAPI"
    return "a claim of its own" if volume.ephemeral is not None else ""


def _projected(volume: Volume) -> list[str]:
    found = []
    for source in volume.projected.sources if volume.projected is not None else ():
        if source.config_map is not None:
            found.append(f"ConfigMap {source.config_map.name}")
        if source.secret is not None:
            found.append(f"Secret {source.secret.name}")
        if source.service_account_token is not None:
            found.append(f"service account token for {source.service_account_token.audience or 'the API server'}")
        if source.downward_api is not None:
            found.append("downwardAPI")
    return found


def volume_words(pod: Pod, name: str) -> str:
    """`volume data (hostPath /data)`."""
    volume = next((one for one in pod.spec.volumes if one.name == name), None)
    source = source_words(volume) if volume is not None else ""
    return f"volume {name} ({source})" if source else f"volume {name}"


def volume_cause(said: str) -> tuple[str, Cause]:
    """(name of the volume or "", cause) of an error of the Go kubelet's form."""
    found = _FAILED.match(said) or _CLAIM.search(said)
    name, why = (found["name"], found["why"]) if found is not None else ("", said)
    if (mount := _MOUNT.search(why)) is not None:
        output = " ".join(mount["output"].split("\n", 1)[0].split())
        # mount(8) names the mount place, which is below the pod's folder and helps no one.
        output = re.sub(r"^mount(?:\.\w+)?: (?:/\S+: )?", "", output).rstrip(".")
        why = f"mount failed: {output or mount['status']}"
    why = " ".join(why.split())
    for pattern, words in _HINTS:
        if (hint := re.search(pattern, why)) is not None:
            return name, Cause(_plain(why), words.format(path=hint.groupdict().get("path", "")))
    return name, Cause(_plain(why))


def _plain(why: str) -> str:
    for pattern, words in _PLAIN:
        if (found := re.search(pattern, why)) is not None:
            return words.format(key=found.groupdict().get("key", ""))
    return why
