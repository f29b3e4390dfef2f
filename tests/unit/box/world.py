"""Documents, and an agent that runs what a plan wants."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import yaml

from glasslet.box.documents import objects_of
from glasslet.box.plan import BoxMemory, BoxPlace, BoxPlan, plan
from glasslet.box.pods import BoxPod
from glasslet.box.shapes import CronJobSpec

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def utc(spec: CronJobSpec) -> tzinfo:
    return UTC


def workload(kind: str, name: str = "web", image: str = "one", **spec: Any) -> dict[str, Any]:
    """A workload of namespace shop. `pod`: more fields of its pods."""
    pod = {"containers": [{"name": "main", "image": image}], **spec.pop("pod", {})}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    group = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    metadata = {"name": name, "namespace": "shop"}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": {"template": template, **spec.pop("job", {})}}, **spec}
    else:
        spec = {"template": template, **spec}
    return {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}


def text_of(*documents: object) -> bytes:
    return yaml.safe_dump_all(documents).encode()


class Machine:
    """Documents, controllers and an agent in memory. Time goes on only by `wait`."""

    def __init__(self, *documents: object, claims: Path = Path("/state/claims")) -> None:
        self.documents = documents
        self.memory = BoxMemory()
        self.now = START
        self.place = BoxPlace(claims=claims, services="10.217.7.0/24", zone=utc)
        self.pods: dict[tuple[str, str], BoxPod] = {}
        self.bodies: dict[tuple[str, str], Any] = {}
        self.ending: set[tuple[str, str]] = set()
        self.slow: set[str] = set()
        self.keeps_ending = False
        self.last: BoxPlan | None = None
        self.started: list[str] = []

    def look(self) -> BoxPlan:
        """One look of the controllers; the agent then has what they want, not yet ready."""
        found = objects_of(text_of(*self.documents), "shop.yaml")
        step = plan(found.objects, self.memory, self.pods, self.now, self.place)
        self.memory, self.last = step.memory, step
        wanted = {pod.key: pod for pod in step.pods}
        for key in [key for key in self.pods if key not in wanted]:
            self._end(key)
        for key, pod in wanted.items():
            self._have(key, pod.slot.uid(pod.namespace), pod.body)
        return step

    def _end(self, key: tuple[str, str]) -> None:
        if self.keeps_ending:
            self.ending.add(key)
        else:
            del self.pods[key]
            self.bodies.pop(key, None)

    def _have(self, key: tuple[str, str], uid: str, body: Any) -> None:
        if key in self.pods and self.pods[key].uid == uid:
            return
        assert body is not None, f"{key} has no manifest to start from"
        self.started.append(key[1])
        self.bodies[key] = body
        self.pods[key] = BoxPod(uid=uid, phase="Pending", ip=f"10.201.7.{len(self.started) + 1}")

    def ended(self) -> None:
        """Pods that were ending are gone."""
        for key in self.ending:
            self.pods.pop(key, None)
        self.ending.clear()

    def make_ready(self, *names: str) -> None:
        """These pods become ready; without names all that are not slow."""
        self._change(
            lambda name: name in names if names else name not in self.slow,
            lambda pod: BoxPod(uid=pod.uid, phase="Running", ready=True, ready_since=self.now, ip=pod.ip, settled=True),
        )

    def finish(self, name: str, phase: str = "Succeeded") -> None:
        """The pod ends."""
        self._change(lambda one: one == name, lambda pod: BoxPod(uid=pod.uid, phase=phase, ip=pod.ip, settled=True))

    def _change(self, chosen: Callable[[str], bool], to: Callable[[BoxPod], BoxPod]) -> None:
        for key, pod in self.pods.items():
            if chosen(key[1]) and not pod.over and not (pod.ready and to(pod).ready):
                self.pods[key] = to(pod)

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += timedelta(seconds=seconds)

    def settle(self, looks: int = 40) -> list[tuple[int, int]]:
        """Looks until nothing changes; each time every pod becomes ready. How many pods were there, and were ready."""
        seen = []
        for _ in range(looks):
            before = dict(self.pods)
            self.look()
            seen.append((len(self.pods), sum(pod.ready for pod in self.pods.values())))
            self.make_ready()
            if self.pods == before:
                break
        return seen

    @property
    def names(self) -> list[str]:
        """The pods that there are."""
        return sorted(name for _, name in self.pods)

    def image(self, name: str) -> str:
        """The image of a pod."""
        return str(self.bodies["shop", name]["spec"]["containers"][0]["image"])
