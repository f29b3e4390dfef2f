"""What a driver's registration changes on the objects CSINode and Node. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from typing import Any, Final

from msgspec.structs import replace

from glasslet.api.meta import ObjectMeta, OwnerReference
from glasslet.api.node import Node
from glasslet.api.storage import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from glasslet.volumes.csi.driver_calls import NodeInfo

NODE_IDS: Final = "csi.volume.kubernetes.io/nodeid"
MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
MIGRATED_PLUGINS: Final = ",".join(
    f"kubernetes.io/{name}"
    for name in ("aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "portworx-volume", "vsphere-volume")
)
"""In-tree plugins that are always translated to CSI at v1.34."""
_MOST_VOLUMES: Final = 2**31 - 1
_LIMIT: Final = "attachable-volumes-csi-"
_LONGEST_KEY: Final = 63

Plain = dict[str, Any]


class TopologyCollision(Exception):
    """Another one gave the node's label a different value; the text is upstream's."""


def new_csi_node(node: Node) -> CSINode:
    """The object of a node without drivers."""
    meta = node.metadata
    owner = OwnerReference(api_version="v1", kind="Node", name=meta.name, uid=meta.uid)
    return CSINode(
        api_version="storage.k8s.io/v1",
        kind="CSINode",
        metadata=ObjectMeta(name=meta.name, owner_references=(owner,), annotations={MIGRATED: MIGRATED_PLUGINS}),
    )


def with_migrated(found: CSINode) -> CSINode:
    """The object with the annotation of this version."""
    if set(found.metadata.annotations.get(MIGRATED, "").split(",")) == set(MIGRATED_PLUGINS.split(",")):
        return found
    annotations = {**found.metadata.annotations, MIGRATED: MIGRATED_PLUGINS}
    return replace(found, metadata=replace(found.metadata, annotations=annotations))


def driver_entry(name: str, info: NodeInfo) -> CSINodeDriver:
    """The driver's entry. A limit that is not positive is none."""
    count = min(info.most_volumes, _MOST_VOLUMES)
    return CSINodeDriver(
        name=name,
        node_id=info.node_id,
        topology_keys=tuple(sorted(info.topology)),
        allocatable=VolumeNodeResources(count=count) if count > 0 else None,
    )


def with_driver(found: CSINode, entry: CSINodeDriver) -> CSINode:
    """The object with this entry, last in the list; the same object if it has the entry."""
    if any(_same(one, entry) for one in found.spec.drivers):
        return found
    others = without_driver(found, entry.name).spec.drivers
    return replace(found, spec=CSINodeSpec(drivers=(*others, entry)))


def without_driver(found: CSINode, name: str) -> CSINode:
    """The object without the driver; the same object if it has none."""
    left = tuple(one for one in found.spec.drivers if one.name != name)
    return found if len(left) == len(found.spec.drivers) else replace(found, spec=CSINodeSpec(drivers=left))


def node_patch_with(node: Node, name: str, info: NodeInfo, own: Collection[str]) -> Plain:
    """The strategic merge patch that shows the driver on the Node; empty if it does already. `own`: labels that this
    driver brought earlier, whose values it may change. Raises TopologyCollision, ValueError for an annotation that is
    no JSON object."""
    ids = _node_ids(node)
    meta: Plain = {}
    if ids.get(name) != info.node_id:
        meta["annotations"] = {NODE_IDS: _json({**ids, name: info.node_id})}
    labels = {key: value for key, value in info.topology.items() if node.metadata.labels.get(key) != value}
    for key, value in labels.items():
        there = node.metadata.labels.get(key)
        if there is not None and key not in own:
            raise TopologyCollision(
                f'detected topology value collision: driver reported "{key}":"{value}" but existing label is '
                f'"{key}":"{there}"'
            )
    if labels:
        meta["labels"] = labels
    status = _without_limit(node, limit_key(name))
    return {**({"metadata": meta} if meta else {}), **({"status": status} if status else {})}


def node_patch_without(node: Node, name: str) -> Plain:
    """The patch that takes the driver's id off the Node; labels stay, volumes of other nodes may be bound to them."""
    ids = _node_ids(node)
    if name not in ids:
        return {}
    left = {key: value for key, value in ids.items() if key != name}
    return {"metadata": {"annotations": {NODE_IDS: _json(left) if left else None}}}


def limit_key(driver: str) -> str:
    """The resource that older versions reported a driver's limit under."""
    if len(_LIMIT + driver) < _LONGEST_KEY:
        return _LIMIT + driver
    short = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()[:16]
    return f"{_LIMIT}{driver[:23]}{short}"


def _same(one: CSINodeDriver, other: CSINodeDriver) -> bool:
    return replace(one, topology_keys=tuple(sorted(one.topology_keys))) == other


def _without_limit(node: Node, key: str) -> Plain:
    parts = {"capacity": node.status.capacity, "allocatable": node.status.allocatable}
    return {part: {key: None} for part, amounts in parts.items() if key in amounts}


def _node_ids(node: Node) -> dict[str, str]:
    text = node.metadata.annotations.get(NODE_IDS, "")
    try:
        found = json.loads(text) if text else {}
    except ValueError as error:
        raise ValueError(f"failed to parse node's {NODE_IDS!r} annotation value ({text!r}) err={error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"failed to parse node's {NODE_IDS!r} annotation value ({text!r}) err=want a JSON object")
    return found


def _json(ids: dict[str, str]) -> str:
    return json.dumps(ids, sort_keys=True, separators=(",", ":"))
