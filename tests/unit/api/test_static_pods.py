"""What a static pod may not refer to. behaviours.md §13: "manifests that reference API objects ... are refused"."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.api.codec import convert
from glasslet.api.pod import Pod
from glasslet.api.static_pods import api_reference, claim_or_bundle_reference


def pod(**spec: Any) -> Pod:
    return convert({"spec": {"containers": [{"name": "a"}], **spec}}, Pod)


def with_volume(**source: Any) -> Pod:
    return pod(volumes=[{"name": "v", **source}])


def with_env(**source: Any) -> Pod:
    return pod(initContainers=[{"env": [{"name": "A", "valueFrom": source}]}])


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (pod(serviceAccountName="a"), "serviceaccounts"),
        (pod(imagePullSecrets=[{"name": "a"}]), "secrets"),
        (with_env(secretKeyRef={"name": "a", "key": "b"}), "secrets"),
        (with_env(configMapKeyRef={"name": "a", "key": "b"}), "configmaps"),
        (pod(containers=[{"envFrom": [{"secretRef": {"name": "a"}}]}]), "secrets"),
        (pod(containers=[{"envFrom": [{"configMapRef": {"name": "a"}}]}]), "configmaps"),
        (pod(resourceClaims=[{"name": "a"}]), "resourceclaims"),
        (with_volume(secret={"secretName": "a"}), "secrets"),
        (with_volume(secret={}), "secrets (via secret volumes)"),
        (with_volume(configMap={"name": "a"}), "configmaps"),
        (with_volume(configMap={}), "configmaps (via configmap volumes)"),
        (with_volume(csi={"driver": "a"}), "csidrivers (via CSI volumes)"),
        (with_volume(csi={"driver": "a", "nodePublishSecretRef": {"name": "a"}}), "secrets"),
        (with_volume(glusterfs={"endpoints": "a"}), "endpoints (via glusterFS volumes)"),
        (with_volume(persistentVolumeClaim={"claimName": "a"}), "persistentvolumeclaims"),
        (with_volume(ephemeral={}), "persistentvolumeclaims (via ephemeral volumes)"),
        (with_volume(azureFile={"secretName": "a"}), "secrets"),
        (with_volume(iscsi={"secretRef": {"name": "a"}}), "secrets"),
        (with_volume(projected={"sources": [{"secret": {"name": "a"}}]}), "secrets"),
        (with_volume(projected={"sources": [{"configMap": {}}]}), "configmaps (via projected volumes)"),
        (with_volume(projected={"sources": [{"serviceAccountToken": {}}]}), "serviceaccounts (via projected volumes)"),
        (with_volume(projected={"sources": [{"clusterTrustBundle": {}}]}), "clustertrustbundles"),
        (with_volume(projected={"sources": [{"podCertificate": {}}]}), "podcertificates"),
    ],
)
def test_a_reference_is_named(made: Pod, what: str) -> None:
    assert api_reference(made) == what


@pytest.mark.parametrize(
    "made",
    [
        pod(),
        with_volume(emptyDir={}),
        with_volume(hostPath={"path": "/a"}),
        with_volume(image={"reference": "a"}),
        with_volume(nfs={"server": "a", "path": "/"}),
        with_volume(iscsi={"targetPortal": "a"}),
        with_volume(downwardAPI={}),
        with_volume(projected={"sources": [{"downwardAPI": {}}]}),
        with_env(fieldRef={"fieldPath": "metadata.name"}),
    ],
)
def test_what_needs_no_api_server_is_fine(made: Pod) -> None:
    assert api_reference(made) is None


def test_without_the_gate_only_claims_and_trust_bundles_are_refused() -> None:
    # behaviours.md §13: "Off: only resource claims and ClusterTrustBundle projections are refused."
    assert claim_or_bundle_reference(with_volume(secret={"secretName": "a"})) is None
    assert claim_or_bundle_reference(pod(resourceClaims=[{"name": "a"}])) == "static pods may not use ResourceClaims"
    bundle = with_volume(projected={"sources": [{"clusterTrustBundle": {}}]})
    assert claim_or_bundle_reference(bundle) == "static pods may not use ClusterTrustBundle projected volume sources"
