"""From documents and what runs to what is to run: pods, objects, addresses. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from glasslet.answers.box import WorkloadRow
from glasslet.api.codec import DecodeError, convert
from glasslet.api.configdata import ConfigMap, Secret
from glasslet.box import crons, jobs, ordinals, replicas
from glasslet.box.claims import bound, claims_of_ephemeral_volumes
from glasslet.box.crons import CronMemory
from glasslet.box.documents import BoxObject, DocumentFinding, Plain
from glasslet.box.jobs import JobMemory
from glasslet.box.pods import Seen, Slot, WantedPod, pod_of
from glasslet.box.services import BoxService, addresses_of, problems_of
from glasslet.box.shapes import CronJobSpec, DeploymentSpec, JobSpec, StatefulSetSpec, WrittenService

T = TypeVar("T")


class BoxMemory(Struct, kw_only=True):
    """What is kept from one look to the next, and over restarts. By the keys of workloads and services."""

    slots: dict[str, tuple[Slot, ...]] = field(default_factory=dict)
    jobs: dict[str, JobMemory] = field(default_factory=dict)
    crons: dict[str, CronMemory] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)


class BoxPlace(Struct, frozen=True, kw_only=True):
    """This machine: the folder of claims, the network of services, and the time zone of schedules (None: its own)."""

    claims: Path
    services: str
    zone: Callable[[CronJobSpec], tzinfo] = crons.zone_of


class BoxPlan(Struct, frozen=True, kw_only=True):
    """What is to be. `objects`: by their path in the API; `folders`: to make before pods start; `wake`: when something
    is due although nothing changes."""

    pods: tuple[WantedPod, ...]
    objects: Mapping[str, Plain]
    folders: tuple[Path, ...]
    services: tuple[BoxService, ...]
    memory: BoxMemory
    rows: tuple[WorkloadRow, ...]
    findings: tuple[DocumentFinding, ...]
    wake: datetime | None = None


def plan(objects: Sequence[BoxObject], before: BoxMemory, seen: Seen, now: datetime, place: BoxPlace) -> BoxPlan:
    """The next step of everything."""
    planner = _Planner(before, seen, now, place)
    for one in objects:
        planner.add(one)
    return planner.plan()


class _Planner:
    """Collects the parts of one plan."""

    def __init__(self, before: BoxMemory, seen: Seen, now: datetime, place: BoxPlace) -> None:
        self.before, self.seen, self.now, self.place = before, seen, now, place
        self.after = BoxMemory()
        self.pods: list[WantedPod] = []
        self.claims: list[BoxObject] = []
        self.volumes: list[BoxObject] = []
        self.services: list[BoxService] = []
        self.data: dict[str, Plain] = {}
        self.rows: list[WorkloadRow] = []
        self.findings: list[DocumentFinding] = []
        self.wakes: list[datetime] = []

    def add(self, one: BoxObject) -> None:
        """Takes one object in."""
        match one.kind:
            case "Pod":
                self._pod(one)
            case "Deployment" | "ReplicaSet" | "ReplicationController" | "DaemonSet":
                self._replicas(one)
            case "StatefulSet":
                self._stateful_set(one)
            case "Job":
                if (spec := self._spec(one, JobSpec)) is not None:
                    self._job(one, one.key, spec)
            case "CronJob":
                self._cron_job(one)
            case "Service":
                self._service(one)
            case "ConfigMap" | "Secret":
                self._data(one)
            case "PersistentVolumeClaim":
                self.claims.append(one)
            case "PersistentVolume":
                self.volumes.append(one)

    def plan(self) -> BoxPlan:
        """All of it."""
        self.after.addresses = addresses_of(self.services, self.before.addresses, self.place.services)
        claimed = bound(self.claims, self.volumes, self.place.claims)
        return BoxPlan(
            pods=tuple(self.pods),
            objects={**self.data, **claimed.objects},
            folders=claimed.folders,
            services=tuple(self.services),
            memory=self.after,
            rows=tuple(self.rows),
            findings=(*self.findings, *claimed.findings),
            wake=min(self.wakes, default=None),
        )

    def _spec(self, one: BoxObject, kind: type[T]) -> T | None:
        """The object's specification; None and a finding if it is not one."""
        try:
            return convert(one.body.get("spec"), kind)
        except DecodeError as error:
            self._broken(one, f"spec: {error}")
            return None

    def _broken(self, one: BoxObject, text: str) -> None:
        """A finding; the pods that the workload has go on."""
        self.findings.append(DocumentFinding(one.place, f"{one}: {text}", broken=True))
        slots = self.before.slots.get(one.key, ())
        if slots:
            self.after.slots[one.key] = slots
        job = self.before.jobs.get(one.key)
        if job is not None:
            self.after.jobs[one.key] = job
            slots = tuple(attempt.slot for attempt in (*job.attempts, *job.ended))
        for slot in slots:
            self._want(one, slot, None)

    def _pod(self, one: BoxObject) -> None:
        slot = Slot(one.name, _revision(one.body))
        metadata = {**one.body["metadata"], "namespace": one.namespace, "uid": slot.uid(one.namespace)}
        self._want(one, slot, {**one.body, "metadata": metadata})

    def _replicas(self, one: BoxObject) -> None:
        spec = self._spec(one, DeploymentSpec)
        if spec is None:
            return
        held = self.before.slots.get(one.key, ())
        if one.kind == "DaemonSet":
            step = replicas.step_of_daemon(one.name, one.namespace, spec, held, self.seen)
        else:
            update = replicas.update_of(spec)
            if isinstance(update, str):
                self._broken(one, update)
                return
            step = replicas.step(one.name, one.namespace, spec, update, held, self.seen, self.now)
        self._has(one, step, len(step.slots) if one.kind == "DaemonSet" else spec.replicas)
        for slot in step.slots:
            new = slot.revision == spec.template.revision()
            self._want(one, slot, self._body(one, spec, slot) if new else None)

    def _stateful_set(self, one: BoxObject) -> None:
        spec = self._spec(one, StatefulSetSpec)
        if spec is None:
            return
        step = ordinals.step(one.name, one.namespace, spec, self.before.slots.get(one.key, ()), self.seen)
        self._has(one, step, spec.replicas)
        for slot in step.slots:
            self.claims += ordinals.claims_of(one, spec, slot)
            new = slot.revision == spec.template.revision()
            self._want(one, slot, ordinals.with_claims(self._body(one, spec, slot), spec, slot) if new else None)

    def _job(self, one: BoxObject, key: str, spec: JobSpec) -> JobMemory:
        """Takes a job in; `key` tells the jobs of a CronJob apart."""
        name = key.rpartition("/")[2]
        memory = jobs.step(name, one.namespace, spec, self.before.jobs.get(key), self.seen, self.now)
        self.after.jobs[key] = memory
        if memory.finished is not None and spec.ttl_seconds_after_finished is not None:
            self.wakes.append(self.now)
        kept = () if jobs.is_expired(spec, memory, self.now) else memory.ended
        for attempt in (*memory.attempts, *kept):
            template = spec.template
            pod = pod_of(template, namespace=one.namespace, slot=attempt.slot, owner=str(one))
            body = jobs.pod_of_index(pod, attempt.index) if attempt.slot.revision == template.revision() else None
            self._want(one, attempt.slot, body)
        start = jobs.next_start(memory)
        if start is not None and not memory.is_finished:
            self.wakes.append(start)
        self._show_job(one, name, spec, memory)
        return memory

    def _show_job(self, one: BoxObject, name: str, spec: JobSpec, memory: JobMemory) -> None:
        start = jobs.next_start(memory)
        waits = start is not None and start > self.now and not memory.attempts
        note = memory.reason or memory.outcome or ("suspended" if spec.suspend else "")
        if not note and waits:
            note = f"{memory.failures} failed, next at {start:%H:%M:%S} UTC"
        self.rows.append(
            WorkloadRow(
                kind="Job",
                namespace=one.namespace,
                name=name,
                ready=memory.succeeded,
                wanted=spec.completions if spec.completions is not None else 1,
                # Waiting does not change what a schedule starts, nor a failure.
                settled=bool(note) or one.kind == "CronJob",
                failed=memory.outcome == "Failed",
                note=note,
            )
        )

    def _cron_job(self, one: BoxObject) -> None:
        spec = self._spec(one, CronJobSpec)
        if spec is None:
            return
        if problem := crons.problem_of(spec):
            self._broken(one, problem)
            return
        zone = self.place.zone(spec)
        memory = self.before.crons.get(one.key) or CronMemory(since=self.now)
        at = None if spec.suspend else crons.due(spec, memory, self.now, zone)
        if at is not None:
            memory = self._run(one, spec, memory, at)
        done: dict[datetime, JobMemory] = {}
        prefix = one.key.rpartition("/")[0].replace("CronJob", "Job", 1)
        for run in memory.runs:
            key = f"{prefix}/{crons.job_name(one.name, run)}"
            done[run] = self._job(one, key, spec.job_template.spec)
        kept = crons.kept_runs(spec, memory.runs, done)
        self.after.crons[one.key] = replace(memory, runs=kept)
        upcoming = None if spec.suspend else crons.next_time(spec, self.now, zone)
        if upcoming is not None:
            self.wakes.append(upcoming)
        note = "suspended" if spec.suspend else f"next at {upcoming:%H:%M:%S} UTC" if upcoming is not None else "never"
        self.rows.append(WorkloadRow(kind="CronJob", namespace=one.namespace, name=one.name, settled=True, note=note))

    def _run(self, one: BoxObject, spec: CronJobSpec, memory: CronMemory, at: datetime) -> CronMemory:
        """The runs with a new one, as the policy has it."""
        prefix = one.key.rpartition("/")[0].replace("CronJob", "Job", 1)
        names = {run: f"{prefix}/{crons.job_name(one.name, run)}" for run in memory.runs}
        active = [run for run in memory.runs if not _is_over(self.before.jobs.get(names[run]))]
        runs = memory.runs
        if active and spec.concurrency_policy == "Forbid":
            return replace(memory, since=at)
        if active and spec.concurrency_policy == "Replace":
            runs = tuple(run for run in runs if run not in active)
        return CronMemory(since=at, runs=(*runs, at))

    def _data(self, one: BoxObject) -> None:
        body = _as_data(one)
        try:
            convert(body, Secret if one.kind == "Secret" else ConfigMap)
        except DecodeError as error:
            # The error names the field, never a value.
            self.findings.append(DocumentFinding(one.place, f"{one}: {error}", broken=True))
            return
        self.data[f"api/v1/namespaces/{one.namespace}/{one.kind.lower()}s/{one.name}"] = body

    def _service(self, one: BoxObject) -> None:
        spec = self._spec(one, WrittenService)
        if spec is None:
            return
        service = BoxService(one.namespace, one.name, spec)
        self.findings += [DocumentFinding(one.place, f"{one}: {problem}") for problem in problems_of(service)]
        self.services.append(service)

    def _body(self, one: BoxObject, spec: DeploymentSpec | StatefulSetSpec, slot: Slot) -> Plain:
        return pod_of(spec.template, namespace=one.namespace, slot=slot, owner=str(one))

    def _has(self, one: BoxObject, step: replicas.WorkloadStep, wanted: int) -> None:
        self.after.slots[one.key] = step.slots
        updating = "" if step.done or step.ready < len(step.slots) else "being updated"
        self.rows.append(
            WorkloadRow(
                kind=one.kind,
                namespace=one.namespace,
                name=one.name,
                ready=step.ready,
                wanted=wanted,
                settled=step.done,
                note=updating,
            )
        )

    def _want(self, one: BoxObject, slot: Slot, body: Plain | None) -> None:
        if body is not None:
            self.claims += claims_of_ephemeral_volumes(body, one.place) if _is_map(body.get("spec")) else []
        self.pods.append(WantedPod(namespace=one.namespace, slot=slot, owner=str(one), body=body))


def _is_over(memory: JobMemory | None) -> bool:
    return memory is not None and memory.is_finished


def _is_map(value: object) -> bool:
    return isinstance(value, dict)


def _revision(body: Plain) -> str:
    from glasslet.box.shapes import digest

    return digest({"metadata": body.get("metadata"), "spec": body.get("spec")})


def _as_data(one: BoxObject) -> Plain:
    """A ConfigMap or Secret as an API server keeps it: `stringData` is in `data`."""
    import base64

    body = {key: value for key, value in one.body.items() if key not in ("stringData", "status")}
    body["metadata"] = {**one.body["metadata"], "namespace": one.namespace}
    text = one.body.get("stringData")
    if one.kind == "Secret" and isinstance(text, dict):
        encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in text.items()}
        body["data"] = {**(body.get("data") or {}), **encoded}
    return body


def encode_memory(memory: BoxMemory) -> bytes:
    """As JSON."""
    return msgspec.json.encode(memory)


def decode_memory(data: bytes) -> BoxMemory:
    """From JSON. Raises msgspec.MsgspecError."""
    return msgspec.json.decode(data, type=BoxMemory)
