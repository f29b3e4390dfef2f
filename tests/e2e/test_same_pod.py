"""Same pod, same answer: pods of many kinds get the status that a v1.34 node gives them, field by field.

The table is tests/data/same_pod/pods.yaml. All of its pods run at once; each has to show its status at some moment, and
to keep it unless the table says that it moves on.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.agent import FOR_EVER, NODE, Agent
from tests.fakes.containerd import BUSYBOX
from tests.fakes.control_plane import ControlPlane, Plain

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

TABLE: list[Plain] = yaml.safe_load(
    (Path(__file__).resolve().parents[1] / "data" / "same_pod" / "pods.yaml").read_text()
)["pods"]
STUBBORN = "trap '' TERM; while :; do sleep 1; done"
SECONDS = 300.0


def test_every_pod_of_the_table_shows_its_status(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.wait_for("kube-root-ca.crt", lambda found: found is not None, kind="configmap")
    for row in TABLE:
        if row.get("static"):
            cluster_agent.put(manifest(row))
    controlplane.apply(*(manifest(row) for row in TABLE if not row.get("static")))
    wrong = {row["name"]: "never seen" for row in TABLE}
    deadline = time.monotonic() + SECONDS
    while wrong and time.monotonic() < deadline:
        found = controlplane.pods()
        for row in TABLE:
            if row["name"] in wrong:
                wrong[row["name"]] = told(row, found)
                if not wrong[row["name"]]:
                    del wrong[row["name"]]
        time.sleep(0.5)
    assert not wrong, "\n\n".join(f"{name}:\n{difference}" for name, difference in wrong.items())
    found = controlplane.pods()
    changed = {row["name"]: told(row, found) for row in TABLE if not row.get("moves")}
    assert not any(changed.values()), "\n\n".join(f"{name}:\n{text}" for name, text in changed.items() if text)


def test_the_table_is_large_enough() -> None:
    assert len({row["name"] for row in TABLE}) == len(TABLE) >= 40


def manifest(row: Plain) -> Plain:
    """The pod of a row."""
    spec = {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 2, **row["spec"]}
    if spec.get("nodeName") == "NODE":
        spec["nodeName"] = NODE
    for kind in ("initContainers", "containers"):
        if kind in spec:
            spec[kind] = [container(one) for one in spec[kind]]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": row["name"], "labels": row.get("labels", {})},
        "spec": spec,
    }


def container(short: Plain) -> Plain:
    """With a command for `run`."""
    made = {"image": BUSYBOX, "imagePullPolicy": "IfNotPresent", **short}
    if command := made.pop("run", ""):
        made["command"] = ["sh", "-c", command.replace("FOR_EVER", FOR_EVER).replace("STUBBORN", STUBBORN)]
    return made


def told(row: Plain, found: dict[str, Plain]) -> str:
    """What is different, "" when nothing is."""
    name = f"{row['name']}-{NODE}" if row.get("static") else row["name"]
    if name not in found:
        return "no such pod"
    return "\n".join(differences(row["status"], normal(found[name]), "status"))


def differences(wanted: Any, actual: Any, path: str) -> list[str]:
    """One line for each field that is not as wanted."""
    if isinstance(wanted, dict) and isinstance(actual, dict):
        keys = sorted(wanted.keys() | actual.keys())
        return [line for key in keys for line in differences(wanted.get(key), actual.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(actual, list) and len(wanted) == len(actual):
        pairs = enumerate(zip(wanted, actual, strict=True))
        return [line for number, (a, b) in pairs for line in differences(a, b, f"{path}[{number}]")]
    if isinstance(wanted, str) and wanted.startswith("~") and isinstance(actual, str | int):
        same = re.fullmatch(wanted[1:], str(actual), re.DOTALL) is not None
    else:
        same = wanted == actual
    return [] if same else [f"{path}: {json.dumps(actual)} instead of {json.dumps(wanted)}"]


def normal(pod: Plain) -> Plain:
    """A status with words for what no table can know; every other field stays."""
    status: Plain = json.loads(json.dumps(pod["status"]).replace(pod["metadata"]["uid"], "UID"))
    address = status.get("hostIP") or "no address"
    if "startTime" in status:
        status["startTime"] = "TIME"
    if "podIP" in status:
        status["podIP"] = place(status["podIP"], address)
    for field in ("podIPs", "hostIPs"):
        if field in status:
            status[field] = [place(one["ip"], address) for one in status[field]]
    if "hostIP" in status:
        status["hostIP"] = place(address, address)
    generation = status.pop("observedGeneration", None)
    known = {None: "NONE", pod["metadata"]["generation"]: "SEEN"}
    status["observedGeneration"] = known.get(generation, generation)
    if "conditions" in status:
        status["conditions"] = [condition(one, generation) for one in status["conditions"]]
    images = {
        one["name"]: one["image"] for kind in ("initContainers", "containers") for one in pod["spec"].get(kind, [])
    }
    for field in ("initContainerStatuses", "containerStatuses"):
        if field in status:
            status[field] = [normal_container(one, images) for one in status[field]]
    return status


def place(address: str, node: str) -> str:
    return "NODE" if address == node else "POD"


def condition(one: Plain, generation: int | None) -> str:
    """In one line; times and the generation have to be right."""
    assert one.pop("lastTransitionTime")
    assert one.pop("lastProbeTime") is None
    text = f"{one.pop('type')}={one.pop('status')}"
    if "reason" in one:
        text += f" {one.pop('reason')}"
    if "message" in one:
        text += f": {one.pop('message')}"
    if one.pop("observedGeneration", None) != generation:
        text += " of another generation"
    return text + (json.dumps(one) if one else "")


def normal_container(one: Plain, images: dict[str, str]) -> Plain:
    """Ids and images that are as they should be leave one word."""
    made = one.pop("containerID", "")
    if made and re.fullmatch(r"containerd://[0-9a-f]{64}", made) and one["imageID"].startswith("sha256:"):
        one["made"] = True
        del one["imageID"]
        if one.get("resources", "missing") == {}:
            del one["resources"]
        else:
            one.setdefault("resources", "missing")
    elif not made and one.get("imageID") == "":
        del one["imageID"]
    if one["image"] == images[one["name"]]:
        del one["image"]
    for field in ("state", "lastState"):
        for kind, details in one[field].items():
            times = {"running": ["startedAt"], "terminated": ["startedAt", "finishedAt"]}.get(kind, [])
            for moment in times:
                if details.get(moment):
                    del details[moment]
            if kind == "terminated" and details.get("containerID", "").startswith("containerd://"):
                del details["containerID"]
    if one["lastState"] == {}:
        del one["lastState"]
    if one.get("volumeMounts") == []:
        del one["volumeMounts"]
    return one
