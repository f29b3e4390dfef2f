"""The pods that a kubelet is replaced under: one of each kind that leaves something on the node."""

from __future__ import annotations

from typing import Any

from tests.fakes.agent import FOR_EVER, NODE, busybox_pod
from tests.fakes.containerd import BUSYBOX, NEWER
from tests.fakes.control_plane import Plain

GPU = "example.com/gpu"
DONE = "done"
"""The pod that has ended and is not started again."""
RESIZED = "resized"
EXAMINED = "examined"
"""The pod that gets an ephemeral container."""
LATER = "later"
"""The pod that asks for a device after a replacement."""

DATA: tuple[Plain, ...] = (
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"key": "value"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "stringData": {"key": "secret"}},
)


def pod(name: str, main: Plain | None = None, command: str = FOR_EVER, **spec: Any) -> Plain:
    """A pod of this node; `main` are more fields of its container."""
    made = busybox_pod(name, command, nodeName=NODE, **spec)
    made["spec"]["containers"][0] |= main or {}
    return made


def resources(**amounts: str) -> Plain:
    """Requests that are the limits as well."""
    return {"resources": {"requests": amounts, "limits": amounts}}


def with_device(name: str) -> Plain:
    """A pod that has one device."""
    return pod(name, {"resources": {"limits": {GPU: "1"}}}, "echo DEVICES=$DEVICES; " + FOR_EVER)


def _with_volumes() -> Plain:
    sources: list[Plain] = [
        {"name": "map", "configMap": {"name": "settings"}},
        {"name": "secret", "secret": {"secretName": "password"}},
        {"name": "disk", "emptyDir": {}},
        {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "labels", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    mounts: list[Plain] = [{"name": one["name"], "mountPath": f"/{one['name']}"} for one in sources]
    mounts += [{"name": "map", "mountPath": "/one-file", "subPath": "key"}]
    return pod("volumes", {"volumeMounts": mounts}, "touch /disk/mine /memory/mine; " + FOR_EVER, volumes=sources)


def _with_init_and_sidecar() -> Plain:
    def container(name: str, command: str, **more: Any) -> Plain:
        return {"name": name, "image": BUSYBOX, "command": ["sh", "-c", command], **more}

    first = [container("first", "true"), container("sidecar", FOR_EVER, restartPolicy="Always")]
    return pod("stages", initContainers=first)


def _probed() -> Plain:
    ok = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    return pod("probed", {"readinessProbe": ok, "livenessProbe": ok, "startupProbe": ok})


def _hooked() -> Plain:
    hooks = {"postStart": {"exec": {"command": ["true"]}}, "preStop": {"exec": {"command": ["true"]}}}
    return pod("hooked", {"lifecycle": hooks})


def api_pods() -> list[Plain]:
    """Pods that come from the API server."""
    made = [
        pod("plain"),
        pod("guaranteed", resources(cpu="50m", memory="32Mi")),
        pod(RESIZED, resources(cpu="50m", memory="32Mi")),
        pod(EXAMINED),
        pod("of-the-node", hostNetwork=True, hostPID=True),
        pod(DONE, command="exit 0", restartPolicy="Never"),
        with_device("device"),
        _with_volumes(),
        _with_init_and_sidecar(),
        _probed(),
        _hooked(),
    ]
    # Debian 12's containerd has no user namespaces.
    return [*made, pod("own-users", hostUsers=False)] if NEWER else made


def static_pods() -> list[Plain]:
    """Pods that come from files: one as short as can be, one as kubeadm writes those of a control plane."""
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    main = {"livenessProbe": probe, "resources": {"requests": {"cpu": "0.05"}}, "imagePullPolicy": "IfNotPresent"}
    like_kubeadms = pod(
        "control",
        main,
        hostNetwork=True,
        priorityClassName="system-node-critical",
        securityContext={"seccompProfile": {"type": "RuntimeDefault"}},
        volumes=[{"name": "etc", "hostPath": {"path": "/etc", "type": "DirectoryOrCreate"}}],
    )
    like_kubeadms["metadata"] |= {"creationTimestamp": None, "labels": {"tier": "control-plane"}}
    return [busybox_pod("kept"), like_kubeadms | {"status": {}}]
