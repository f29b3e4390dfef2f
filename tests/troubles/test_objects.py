"""Pods of a cluster that wait for objects, conditions, finalizers or their own end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from glasslet.answers.states import Rule
from tests.fakes.agent import NODE
from tests.troubles.table import Plain, Trouble, chosen, each_chosen
from tests.troubles.world import ClusterWorld, bound_pod

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

AREA = "Objects, gates and deletion"
Manifest = Callable[[Any], Plain]
STUBBORN = "trap '' TERM; while :; do sleep 1; done"


def container(name: str, **fields: Any) -> Callable[[Any], Plain]:
    """The manifest of a pod whose container has these fields."""

    def manifest(_: Any) -> Plain:
        pod = bound_pod(name)
        pod["spec"]["containers"][0] |= fields
        return pod

    return manifest


def volume(name: str, source: Plain) -> Callable[[Any], Plain]:
    """The manifest of a pod with this volume."""

    def manifest(_: Any) -> Plain:
        pod = bound_pod(name, volumes=[{"name": "data", **source}])
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/v"}]
        return pod

    return manifest


def spec(
    name: str, shell: str = STUBBORN, /, finalizers: tuple[str, ...] = (), **fields: Any
) -> Callable[[Any], Plain]:
    """The manifest of a pod with these fields."""

    def manifest(_: Any) -> Plain:
        pod = bound_pod(name, shell, **fields)
        pod["metadata"]["finalizers"] = list(finalizers)
        return pod

    return manifest


def env(source: Plain) -> Plain:
    return {"env": [{"name": "VALUE", "valueFrom": source}]}


TROUBLES = (
    Trouble(
        name="no-config-map",
        made="an environment variable from a ConfigMap that does not exist",
        rule=Rule.MISSING_OBJECT,
        says=("waits for ConfigMap default/absent, which does not exist",),
        pod=container("no-config-map", **env({"configMapKeyRef": {"name": "absent", "key": "k"}})),
    ),
    Trouble(
        name="no-secret",
        made="an environment variable from a Secret that does not exist",
        rule=Rule.MISSING_OBJECT,
        says=("waits for Secret default/absent, which does not exist",),
        pod=container("no-secret", **env({"secretKeyRef": {"name": "absent", "key": "k"}})),
    ),
    Trouble(
        name="no-key",
        made="an environment variable from a key that its Secret lacks",
        rule=Rule.MISSING_OBJECT,
        says=('key "absent" of Secret default/present, which does not exist',),
        pod=container("no-key", **env({"secretKeyRef": {"name": "present", "key": "absent"}})),
    ),
    Trouble(
        name="no-env-from",
        made="envFrom of a ConfigMap that does not exist",
        rule=Rule.MISSING_OBJECT,
        says=("waits for ConfigMap default/absent",),
        pod=container("no-env-from", envFrom=[{"configMapRef": {"name": "absent"}}]),
    ),
    Trouble(
        name="no-secret-volume",
        made="a volume of a Secret that does not exist",
        rule=Rule.MISSING_OBJECT,
        says=("waits for Secret default/absent, which does not exist",),
        pod=volume("no-secret-volume", {"secret": {"secretName": "absent"}}),
    ),
    Trouble(
        name="no-config-map-volume",
        made="a volume of a ConfigMap that does not exist",
        rule=Rule.MISSING_OBJECT,
        says=("waits for ConfigMap default/absent, which does not exist",),
        pod=volume("no-config-map-volume", {"configMap": {"name": "absent"}}),
    ),
    Trouble(
        name="no-projected-key",
        made="a projected volume of a key that its ConfigMap lacks",
        rule=Rule.VOLUME_NOT_READY,
        says=("volume data (projected: ConfigMap present): its ConfigMap has no key absent",),
        pod=volume(
            "no-projected-key",
            {"projected": {"sources": [{"configMap": {"name": "present", "items": [{"key": "absent", "path": "p"}]}}]}},
        ),
    ),
    Trouble(
        name="no-claim",
        made="a claim that does not exist",
        rule=Rule.VOLUME_NOT_READY,
        says=("volume data (claim absent): the claim does not exist",),
        pod=volume("no-claim", {"persistentVolumeClaim": {"claimName": "absent"}}),
    ),
    Trouble(
        name="claim-not-bound",
        made="a claim that is not bound",
        rule=Rule.VOLUME_NOT_READY,
        says=("volume data (claim unbound): the claim is not bound to a PersistentVolume yet",),
        pod=volume("claim-not-bound", {"persistentVolumeClaim": {"claimName": "unbound"}}),
    ),
    Trouble(
        name="csi-driver",
        made="a CSI volume whose driver is not on the node",
        rule=Rule.VOLUME_NOT_READY,
        says=("volume data (CSI driver disk.example.com): the cluster has no CSIDriver object disk.example.com",),
        pod=volume("csi-driver", {"csi": {"driver": "disk.example.com"}}),
    ),
    Trouble(
        name="readiness-gate",
        made="a readiness gate that no component sets",
        rule=Rule.READINESS_GATE,
        says=("its containers are, but readiness gate example.com/balanced is not set yet",),
        pod=spec("readiness-gate", readinessGates=[{"conditionType": "example.com/balanced"}]),
    ),
)
LATER = (
    Trouble(
        name="wrong-handler",
        made="the pod's RuntimeClass names a handler that the node's runtime lacks",
        rule=Rule.SANDBOX,
        says=("the runtime of this node has no handler nowhere",),
        pod=spec("wrong-handler", runtimeClassName="nowhere"),
    ),
)
NO_ACCOUNT = Trouble(
    name="token-no-account",
    made="the pod's ServiceAccount was deleted before its token was made",
    rule=Rule.VOLUME_NOT_READY,
    says=("volume token (projected", "because ServiceAccount fleeting does not exist"),
    pod=lambda _: with_token("token-no-account", "fleeting"),
)
NO_TOKEN = Trouble(
    name="token-refused",
    made="the API server refuses the token of the pod's ServiceAccount (an admission policy)",
    rule=Rule.VOLUME_NOT_READY,
    says=("the API server gives no token: ", "no tokens today"),
    pod=lambda _: with_token("token-refused", "default"),
)


def with_token(name: str, account: str) -> Plain:
    """A pod with a token of this ServiceAccount."""
    pod = bound_pod(name, serviceAccountName=account)
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
    pod["spec"]["volumes"] = [{"name": "token", "projected": {"sources": [source]}}]
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "token", "mountPath": "/token"}]
    return pod


TOKENS = (NO_ACCOUNT, NO_TOKEN)
DELETED = (
    Trouble(
        name="finalizer",
        made="a finalizer on a deleted pod that no controller removes",
        rule=Rule.FINALIZER,
        says=("was deleted and has stopped; its object stays until finalizer example.com/keep is removed",),
        pod=spec("finalizer", "sleep 1000", finalizers=("example.com/keep",), terminationGracePeriodSeconds=1),
    ),
    Trouble(
        name="ignores-term",
        made="a deleted pod ignores TERM",
        rule=Rule.TERMINATING,
        says=("because the pod was deleted", "main got its stop signal", "KILL comes at"),
        pod=spec("ignores-term", terminationGracePeriodSeconds=600),
    ),
    Trouble(
        name="pre-stop",
        made="the preStop hook of a deleted pod hangs",
        rule=Rule.TERMINATING,
        says=("because the pod was deleted", "preStop hook", "KILL comes at"),
        pod=container("pre-stop", lifecycle={"preStop": {"exec": {"command": ["sleep", "1000"]}}}),
    ),
)
FINE = Trouble(name="", made="", rule=Rule.FINE, says=("is fine",))


def prepare(world: ClusterWorld) -> None:
    """The objects that are there."""
    one: Plain = {"apiVersion": "v1", "metadata": {"name": "present"}}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none",
        "resources": {"requests": {"storage": "1Mi"}},
    }
    world.plane.apply(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "nowhere"},
            "handler": "nowhere",
        },
        {**one, "kind": "Secret", "stringData": {"k": "hunter2"}},
        {**one, "kind": "ConfigMap", "data": {"k": "v"}},
        {**one, "kind": "PersistentVolumeClaim", "metadata": {"name": "unbound"}, "spec": claim},
    )


@pytest.fixture(scope="module")
def world(cluster: ClusterWorld) -> ClusterWorld:
    prepare(cluster)
    cluster.put(*chosen(TROUBLES), *chosen(LATER), *chosen(DELETED))
    return cluster


@each_chosen((*TROUBLES, *LATER))
def test_a_pod_that_waits_for_another_party_gets_its_name(world: ClusterWorld, trouble: Trouble) -> None:
    world.shows(trouble)


@each_chosen(DELETED)
def test_a_deleted_pod_gets_what_keeps_it(world: ClusterWorld, trouble: Trouble) -> None:
    world.verdict_until(FINE, f"/pods/{world.pod(trouble)}/why")
    grace = "--grace-period=1" if trouble.name == "finalizer" else "--grace-period=600"
    world.plane.kubectl("delete", "pod", trouble.name, "--wait=false", grace)
    world.shows(trouble)
    world.plane.kubectl("patch", "pod", trouble.name, "-p", '{"metadata":{"finalizers":null}}', check=False)
    world.plane.kubectl("delete", "pod", trouble.name, "--wait=false", "--grace-period=0", "--force", check=False)


@each_chosen((NO_ACCOUNT,))
def test_a_pod_whose_account_is_gone_gets_its_name(cluster: ClusterWorld, trouble: Trouble) -> None:
    cluster.plane.kubectl("create", "serviceaccount", "fleeting")
    pod = with_token(trouble.name, "fleeting")
    del pod["spec"]["nodeName"]
    cluster.plane.apply({**pod, "spec": {**pod["spec"], "schedulerName": "none"}})
    cluster.plane.kubectl("delete", "serviceaccount", "fleeting")
    target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": trouble.name}, "target": target}
    path = f"/api/v1/namespaces/default/pods/{trouble.name}/binding"
    cluster.plane.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(binding))
    cluster.shows(trouble)


@each_chosen((NO_TOKEN,))
def test_a_token_that_is_refused_is_quoted(cluster: ClusterWorld, trouble: Trouble) -> None:
    rules = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["serviceaccounts/token"]}
    ]
    refusal = {"expression": "false", "message": "no tokens today", "reason": "Forbidden"}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-tokens"},
        "spec": {"matchConstraints": {"resourceRules": rules}, "validations": [refusal]},
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-tokens"},
        "spec": {"policyName": "no-tokens", "validationActions": ["Deny"]},
    }
    cluster.plane.apply(policy, binding)
    try:
        time.sleep(2)  # the API server reads its policies now and then
        cluster.put(trouble)
        cluster.shows(trouble)
    finally:
        cluster.plane.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "no-tokens")
