"""Fields of a pod that need a runtime newer than Debian's, on containerd 2.x behind a real API server.

All pods of the table run at once. Each writes what it sees into its termination log and ends; that is compared.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import cluster_member, joined, running_control_plane
from tests.e2e.test_api_pods import api_pod, wait_until
from tests.e2e.test_pod_fields import Telling, own, telling_pod, words
from tests.fakes.agent import FOR_EVER, NODE, Agent
from tests.fakes.cgroups import RealRoot, real_root
from tests.fakes.containerd import PrivateContainerd, images_script
from tests.fakes.control_plane import ControlPlane, Plain, is_ready, phase
from tests.skips import on_purpose

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

GATES = {"ImageVolume": True, "ContainerStopSignals": True}
DATA = "glasslet.test/data:1"
GROUPS = "glasslet.test/groups:1"
"""User 7 is in group 4321, the image says."""


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane that takes the fields."""
    text = ",".join(f"{name}=true" for name in GATES)
    with running_control_plane("-apiserver-flags", f"--feature-gates={text}") as made:
        yield made


@pytest.fixture(scope="module")
def runtime(newer_containerd: PrivateContainerd) -> PrivateContainerd:
    """With the images of these tests."""
    script = images_script()
    users = b"root:x:0:0::/:/bin/sh\nann:x:7:7::/:/bin/sh\n"
    files = {"etc/passwd": users, "etc/group": b"root:x:0:\nteam:x:4321:ann\n"}
    archive = newer_containerd.folder / "fields.tar"
    script.write_archive(
        archive,
        [
            script.BuiltImage(names=(DATA,), files={"marker": b"whole\n", "part/inner": b"part\n"}),
            script.BuiltImage(names=(GROUPS,), files=files),
        ],
    )
    newer_containerd.import_images(archive)
    return newer_containerd


@pytest.fixture(scope="module")
def root() -> Iterator[RealRoot]:
    with real_root() as made:
        yield made


@pytest.fixture(scope="module")
def agent(
    plane: ControlPlane, runtime: PrivateContainerd, root: RealRoot, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Agent]:
    """One for all tests, which name their pods differently. Its configuration errs about the cgroup driver."""
    made = cluster_member(
        plane,
        runtime,
        tmp_path_factory.mktemp("newer"),
        featureGates=GATES,
        cgroupRoot=root.path,
        cgroupsPerQOS=True,
        enforceNodeAllocatable=["pods"],
        cgroupDriver="systemd",
    )
    with joined(plane, runtime, made):
        yield made


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A folder with another file system in `sub`."""
    folder = tmp_path / "outer"
    (folder / "sub").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder / "sub")], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder / "sub")], check=True)


def mounts(**paths: str) -> Plain:
    """Volumes by the place in the container."""
    return {"volumeMounts": [{"name": name, "mountPath": path} for name, path in paths.items()]}


def image_volume(reference: str = DATA) -> Plain:
    return {"name": "image", "image": {"reference": reference, "pullPolicy": "IfNotPresent"}}


OWN_USERS = {"hostUsers": False}
BLOCK = r"0 (\d+) 65536"
IN_PROC = "grep -c ' /proc' /proc/mounts"
AS_ANN: Plain = {"image": GROUPS, **own(runAsUser=7, runAsGroup=7)}

TELLING = [
    Telling("ids", "cat /proc/self/uid_map /proc/self/gid_map", rf"{BLOCK} 0 \1 65536", spec=OWN_USERS),
    Telling(
        "owner",
        "touch /disk/file /memory/file; stat -c %u:%g /disk/file /memory/file /map/key /etc/hosts",
        "0:0 0:0 0:0 0:0",
        mounts(disk="/disk", memory="/memory", map="/map"),
        {
            **OWN_USERS,
            "volumes": [
                {"name": "disk", "emptyDir": {}},
                {"name": "memory", "emptyDir": {"medium": "Memory"}},
                {"name": "map", "configMap": {"name": "some"}},
            ],
        },
    ),
    Telling("unmasked", IN_PROC, "1", own(procMount="Unmasked"), OWN_USERS),
    Telling("masked", IN_PROC, r"[2-9]|\d\d", spec=OWN_USERS),
    Telling(
        "image-volume",
        "cat /all/marker /part/inner; touch /all/new",
        "whole part touch: /all/new: Read-only file system",
        {
            "volumeMounts": [
                {"name": "image", "mountPath": "/all"},
                {"name": "image", "mountPath": "/part", "subPath": "part"},
            ]
        },
        {"volumes": [image_volume()]},
    ),
    Telling(
        "image-volume-ids",
        "stat -c %u /all/marker",
        "0",
        mounts(image="/all"),
        {**OWN_USERS, "volumes": [image_volume()]},
    ),
    Telling("merge", "id -G", "7 10 4321", AS_ANN, own(supplementalGroups=[10])),
    Telling("strict", "id -G", "7 10", AS_ANN, own(supplementalGroups=[10], supplementalGroupsPolicy="Strict")),
]


def test_containers_find_what_their_pods_ask_for(plane: ControlPlane, agent: Agent) -> None:
    # behaviours.md §30: "Volume mounts of user namespace pods carry uid and gid mappings."
    plane.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "some"}, "data": {"key": "value"}})
    plane.apply(*map(telling_pod, TELLING))
    names = {one.name for one in TELLING}
    wait_until(lambda: {name for name, pod in plane.pods().items() if phase(pod) in ("Succeeded", "Failed")} >= names)
    found = plane.pods()
    said = {one.name: words(found[one.name]) for one in TELLING}
    assert {one.name: said[one.name] for one in TELLING if not re.fullmatch(one.says, said[one.name])} == {}
    assert main(found["strict"])["user"] == {"linux": {"uid": 7, "gid": 7, "supplementalGroups": [7, 10]}}


@pytest.mark.parametrize("mode", ["Enabled", "IfPossible"])
def test_what_is_mounted_below_a_volume_is_read_only_too(
    plane: ControlPlane, agent: Agent, mounted: Path, mode: str
) -> None:
    # behaviours.md §22: "recursiveReadOnly IfPossible/Enabled/Disabled; Enabled fails on a runtime without it."
    name = f"recursive-{mode.lower()}"
    pod = api_pod(name, f"touch /v/sub/a && touch /w/sub/b; {FOR_EVER}")
    pod["spec"]["volumes"] = [{"name": "v", "hostPath": {"path": str(mounted)}}]
    pod["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "v", "mountPath": "/v", "readOnly": True},
        {"name": "v", "mountPath": "/w", "readOnly": True, "recursiveReadOnly": mode},
    ]
    plane.apply(pod)
    found = plane.wait_for(name, is_ready)
    assert found is not None
    assert [one["recursiveReadOnly"] for one in main(found)["volumeMounts"]] == ["Disabled", "Enabled"]
    wait_until(lambda: "Read-only file system" in plane.kubectl("logs", name))
    assert [path.name for path in (mounted / "sub").iterdir()] == ["a"]


def test_the_node_tells_what_its_runtime_can(plane: ControlPlane, agent: Agent) -> None:
    node = plane.get("node", NODE)
    assert node is not None
    status = node["status"]
    able = {"recursiveReadOnlyMounts": True, "userNamespaces": True}
    assert status["runtimeHandlers"] == [{"name": "", "features": able}, {"name": "runc", "features": able}]
    assert status["features"] == {"supplementalGroupsPolicy": True}
    assert status["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://v2.")


def test_ids_last_as_long_as_the_pod(plane: ControlPlane, agent: Agent, runtime: PrivateContainerd) -> None:
    plane.apply(api_pod("lasting", f"cat /proc/self/uid_map; {FOR_EVER}", restartPolicy="Always", **OWN_USERS))
    found = plane.wait_for("lasting", is_ready)
    assert found is not None
    file = agent.root / "pods" / found["metadata"]["uid"] / "userns"
    [mapping] = json.loads(file.read_text())["uidMappings"]
    wait_until(lambda: plane.kubectl("logs", "lasting").split() == ["0", str(mapping["hostId"]), "65536"])
    agent.kill()
    agent.start()
    runtime.kill_task(main(found)["containerID"].removeprefix("containerd://"))
    again = plane.wait_for("lasting", lambda pod: is_ready(pod) and main(pod)["restartCount"] == 1)
    assert again is not None
    wait_until(lambda: plane.kubectl("logs", "lasting").split() == ["0", str(mapping["hostId"]), "65536"])
    plane.kubectl("delete", "pod", "lasting")
    wait_until(lambda: not file.exists())


def test_a_container_is_stopped_with_the_signal_of_its_pod(plane: ControlPlane, agent: Agent, tmp_path: Path) -> None:
    # behaviours.md §4: "Stop signal: image/runtime default (SIGTERM) unless lifecycle.stopSignal (gate
    # ContainerStopSignals, alpha, off)"
    loop = "while :; do sleep 1000 & wait; done"
    pod = api_pod(
        "signalled",
        f"trap 'echo usr1 >/v/said; exit 0' USR1; trap 'echo term >/v/said; exit 0' TERM; echo set; {loop}",
        terminationGracePeriodSeconds=60,
    )
    pod["spec"] |= {"os": {"name": "linux"}, "volumes": [{"name": "v", "hostPath": {"path": str(tmp_path)}}]}
    pod["spec"]["containers"][0] |= {"lifecycle": {"stopSignal": "SIGUSR1"}, **mounts(v="/v")}
    plane.apply(pod)
    found = plane.wait_for("signalled", is_ready)
    assert found is not None
    assert main(found)["stopSignal"] == "SIGUSR1"
    wait_until(lambda: plane.kubectl("logs", "signalled") == "set\n")
    plane.kubectl("delete", "pod", "signalled")
    assert (tmp_path / "said").read_text() == "usr1\n"


def test_an_image_volume_without_image_holds_its_container_back(plane: ControlPlane, agent: Agent) -> None:
    # behaviours.md §2: "Image volumes (gate ImageVolume, beta, off) are pulled before each container; failures show on
    # every container that mounts them."
    pod = api_pod("no-image-volume", volumes=[image_volume("localhost:1/nobody/has:1")])
    pod["spec"]["containers"][0] |= mounts(image="/v")
    plane.apply(pod)
    found = plane.wait_for("no-image-volume", lambda pod: waiting(pod).get("reason") == "ImagePullBackOff")
    assert "localhost:1/nobody/has:1" in waiting(found)["message"]


def main(pod: Plain | None) -> Plain:
    """The status of the container, {} before there is one."""
    statuses = (pod or {}).get("status", {}).get("containerStatuses") or [{}]
    found: Plain = statuses[0]
    return found


def waiting(pod: Plain | None) -> Plain:
    found: Plain = main(pod).get("state", {}).get("waiting") or {}
    return found


def test_a_folder_that_the_image_lacks_is_told(plane: ControlPlane, agent: Agent) -> None:
    pod = api_pod("no-part", volumes=[image_volume()])
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "image", "mountPath": "/v", "subPath": "nowhere"}]
    plane.apply(pod)
    found = plane.wait_for("no-part", lambda pod: waiting(pod).get("reason") == "CreateContainerError")
    assert "nowhere" in waiting(found)["message"]


def test_a_resize_reaches_kernel_status_and_runtime(plane: ControlPlane, agent: Agent, root: RealRoot) -> None:
    # behaviours.md §26: "UpdatePodSandboxResources is called best effort."
    pod = api_pod("grows")
    pod["spec"]["containers"][0]["resources"] = resources("100m", "64Mi")
    plane.apply(pod)
    found = plane.wait_for("grows", is_ready)
    assert found is not None
    # The runtime's driver, whatever the configuration says: a systemd slice would have another name.
    assert root.pods()[found["metadata"]["uid"]] == "/kubepods"
    patch = {"spec": {"containers": [{"name": "main", "resources": resources("200m", "96Mi")}]}}
    plane.kubectl("patch", "pod", "grows", "--subresource", "resize", "-p", json.dumps(patch))
    plane.wait_for("grows", lambda pod: main(pod).get("resources") == resources("200m", "96Mi"))
    told = 'kubelet_runtime_operations{}_total{{operation_type="update_podsandbox_resources"}}'

    def metrics() -> str:
        return plane.kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/metrics")

    wait_until(lambda: f"{told.format('')} 1" in metrics())
    assert told.format("_errors") not in metrics()


def resources(cpu: str, memory: str) -> Plain:
    return {kind: {"cpu": cpu, "memory": memory} for kind in ("limits", "requests")}


@pytest.mark.skipif(
    shutil.which("criu") is not None, reason=on_purpose("criu is installed: the checkpoint would be made")
)
def test_a_checkpoint_without_criu_fails_with_the_words_of_the_runtime(plane: ControlPlane, agent: Agent) -> None:
    plane.apply(api_pod("frozen"))
    plane.wait_for("frozen", is_ready)
    path = f"/api/v1/nodes/{NODE}/proxy/checkpoint/default/frozen/main"
    said = plane.kubectl("create", "--raw", path, "-f", "-", stdin="{}", check=False)
    assert "checkpointing of default/frozen/main failed" in said
    assert "criu binary not found" in said
