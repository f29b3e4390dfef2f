"""Thirty pods of every class and priority, each of which uses what it is told to of one resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tests.e2e.test_api_pods import api_pod
from tests.fakes.agent import NODE
from tests.fakes.control_plane import Plain

PODS = 30
PRIORITIES = {"lowest": -10, "usual": 0, "higher": 100, "highest": 1000}
CRITICAL = "p00"
"""It uses most and would be first, were it not critical."""
TRIGGER = "p29"
"""It stays within its request, has the highest priority, and uses more once it is told to."""
MIB = 2**20


class Hunger(Struct, frozen=True, kw_only=True):
    """How a pod uses one resource. `command`: takes `{amount}` of it, under the name `{name}`; `unit`: what one of an
    amount is; `extra`: what the trigger takes more; `margin`: how far the threshold is below what is free before that;
    `reclaim`: the threshold's minimum reclaim. All amounts but `unit` are in units."""

    signal: str
    resource: str
    command: str
    unit: int
    extra: int
    margin: int
    reclaim: int


MEMORY = Hunger(
    signal="memory.available",
    resource="memory",
    # The buffer stays, because the pipe takes only its first 64 KiB.
    command="dd if=/dev/zero bs={amount}M count=1 2>/dev/null | sleep 100000 &",
    unit=MIB,
    extra=120,
    margin=60,
    reclaim=400,
)
SPACE = Hunger(
    signal="nodefs.available",
    resource="ephemeral-storage",
    command="dd if=/dev/zero of=/data/{name} bs=1M count={amount} 2>/dev/null",
    unit=MIB,
    extra=120,
    margin=60,
    reclaim=400,
)
INODES = Hunger(
    signal="nodefs.inodesFree",
    resource="inodes",
    command="i=0; while [ $i -lt {amount}0 ]; do : > /data/{name}$i; i=$((i+1)); done",
    unit=10,
    extra=120,
    margin=60,
    reclaim=400,
)
PIDS = Hunger(
    signal="pid.available",
    resource="pids",
    command="i=0; while [ $i -lt {amount} ]; do sleep 100000 & i=$((i+1)); done",
    unit=1,
    # Others start processes on this machine as well.
    extra=900,
    margin=450,
    reclaim=250,
)
ALL = {"memory": MEMORY, "space": SPACE, "inodes": INODES, "pids": PIDS}


def priority_classes() -> list[Plain]:
    """One for each of PRIORITIES."""
    return [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in PRIORITIES.items()
    ]


def amount(number: int) -> int:
    """Units that a pod uses: no two the same, and far enough apart that what else a pod uses does not matter."""
    return 130 if number == 0 else 10 + 4 * (number * 11 % PODS)


def pods(hunger: Hunger, folder: str) -> list[Plain]:
    """All of them. In `folder` of the node each makes a file `up.<name>` when it uses what it shall, and `term.<name>`
    when it is told to end."""
    return [_pod(number, hunger, folder) for number in range(PODS)]


def _pod(number: int, hunger: Hunger, folder: str) -> Plain:
    name, used = f"p{number:02}", amount(number)
    trigger = name == TRIGGER
    takes = hunger.command.format(amount=used, name="data")
    more = hunger.command.format(amount=hunger.extra, name="more") if trigger else "sleep 100000 & wait"
    ready = "while [ ! -e /report/go ]; do sleep 0.05; done;" if trigger else ""
    command = (
        f"trap 'touch /report/term.{name}; exit 1' TERM; {takes}\n"
        f"touch /report/up.{name}; {ready} {more}\nwhile :; do sleep 1; done"
    )
    classes = ("system-node-critical", *PRIORITIES) if number == 0 else tuple(PRIORITIES)
    made = api_pod(
        name,
        command,
        nodeName=NODE,
        restartPolicy="Never",
        priorityClassName="highest" if trigger else classes[0 if number == 0 else number * 7 % 4],
        terminationGracePeriodSeconds=30,
        tolerations=[{"operator": "Exists"}],
        volumes=[
            {"name": "data", "emptyDir": {}},
            {"name": "report", "hostPath": {"path": folder, "type": "Directory"}},
        ],
    )
    (main,) = made["spec"]["containers"]
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "report", "mountPath": "/report"}]
    main |= {"volumeMounts": mounts, "resources": _resources(number, used, hunger)}
    return made


def _resources(number: int, used: int, hunger: Hunger) -> Mapping[str, Any]:
    """Two of six are BestEffort, two use more than they request, one uses less, one is Guaranteed and uses less."""
    kind = number % 6
    if kind in (0, 2):
        return {}
    trigger = f"p{number:02}" == TRIGGER
    least = 6 if kind in (1, 3) else used + 30 + (hunger.extra if trigger else 0)
    requests = {"cpu": "1m", "memory": f"{least}Mi"}
    storage = {"ephemeral-storage": f"{least}Mi"} if hunger.resource == "ephemeral-storage" else {}
    if kind == 5:
        limits = {"cpu": "800m" if trigger else "200m", "memory": f"{least}Mi"}
        return {"requests": {**limits, **storage}, "limits": limits}
    return {"requests": {**requests, **storage}}
