"""StatefulSets: pods in order, each with its own claims. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glasslet.box.documents import BoxObject, Plain
from glasslet.box.pods import Seen, Slot, available, current
from glasslet.box.replicas import WorkloadStep, number
from glasslet.box.shapes import StatefulSetSpec


def step(name: str, namespace: str, spec: StatefulSetSpec, held: Sequence[Slot], seen: Seen) -> WorkloadStep:
    """The next step: one pod is made, updated or removed at a time, unless the policy is Parallel."""
    first, end = spec.ordinals.start, spec.ordinals.start + spec.replicas
    revision = spec.template.revision()
    slots = {number(slot): slot for slot in held}

    def is_ready(ordinal: int) -> bool:
        return ordinal in slots and available(seen, namespace, slots[ordinal])

    parallel = spec.pod_management_policy == "Parallel"
    if not _all_gone(name, namespace, slots, seen):
        return _as_step(slots, spec, revision, is_ready_count=sum(map(is_ready, slots)))
    for ordinal in sorted(slots, reverse=True):
        if not first <= ordinal < end:
            del slots[ordinal]
            if not parallel:
                return _as_step(slots, spec, revision, is_ready_count=sum(map(is_ready, slots)))
    for ordinal in range(first, end):
        if ordinal not in slots:
            slots[ordinal] = Slot(f"{name}-{ordinal}", revision)
        if not is_ready(ordinal) and not parallel:
            break
    _update(slots, spec, revision, namespace, seen)
    return _as_step(slots, spec, revision, is_ready_count=sum(map(is_ready, slots)))


def _update(slots: dict[int, Slot], spec: StatefulSetSpec, revision: str, namespace: str, seen: Seen) -> None:
    """Moves the highest pod of an old revision to the new one, when no other is on its way."""
    old = [ordinal for ordinal, slot in slots.items() if slot.revision != revision]
    if spec.update_strategy.type == "OnDelete":
        for ordinal in old:
            if current(seen, namespace, slots[ordinal]) is None:
                slots[ordinal] = Slot(slots[ordinal].name, revision)
        return
    for ordinal in sorted(old, reverse=True):
        if ordinal < spec.update_strategy.rolling_update.partition:
            return
        others = (slot for other, slot in slots.items() if other != ordinal)
        if all(available(seen, namespace, slot) for slot in others) or not available(seen, namespace, slots[ordinal]):
            slots[ordinal] = Slot(slots[ordinal].name, revision)
        return


def _all_gone(name: str, namespace: str, slots: Mapping[int, Slot], seen: Seen) -> bool:
    """Whether no pod of the set is on its way out: its successor would take its name or its place."""
    kept = {slot.name for slot in slots.values()}
    prefix = f"{name}-"
    ending = (
        pod
        for where, pod in seen
        if where == namespace and pod.startswith(prefix) and pod.removeprefix(prefix).isdigit() and pod not in kept
    )
    return not any(ending)


def _as_step(slots: Mapping[int, Slot], spec: StatefulSetSpec, revision: str, *, is_ready_count: int) -> WorkloadStep:
    due = {
        slot.revision
        for ordinal, slot in slots.items()
        if ordinal >= spec.update_strategy.rolling_update.partition and spec.update_strategy.type != "OnDelete"
    }
    done = is_ready_count == len(slots) == spec.replicas and due <= {revision}
    return WorkloadStep(slots=tuple(slots[each] for each in sorted(slots)), ready=is_ready_count, done=done)


def claims_of(owner: BoxObject, spec: StatefulSetSpec, slot: Slot) -> list[BoxObject]:
    """The claims of one pod: `TEMPLATE-NAME-ORDINAL`. They outlive it."""
    made = []
    for template in spec.volume_claim_templates:
        name = f"{template.metadata.get('name', '')}-{slot.name}"
        body: Plain = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": owner.namespace},
            "spec": dict(template.spec),
        }
        claim = "PersistentVolumeClaim"
        made.append(BoxObject(kind=claim, namespace=owner.namespace, name=name, body=body, place=owner.place))
    return made


def with_claims(pod: Plain, spec: StatefulSetSpec, slot: Slot) -> Plain:
    """The pod with its volumes of `volumeClaimTemplates`, its host name and its subdomain."""
    own = {str(template.metadata.get("name", "")) for template in spec.volume_claim_templates}
    volumes = [
        one for one in pod["spec"].get("volumes") or () if not isinstance(one, dict) or one.get("name") not in own
    ]
    for template in spec.volume_claim_templates:
        name = str(template.metadata.get("name", ""))
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{slot.name}"}})
    if volumes:
        pod["spec"]["volumes"] = volumes
    pod["spec"]["hostname"] = slot.name
    if spec.service_name:
        pod["spec"]["subdomain"] = spec.service_name
    labels = pod["metadata"].setdefault("labels", {})
    labels["statefulset.kubernetes.io/pod-name"] = slot.name
    labels["apps.kubernetes.io/pod-index"] = str(number(slot))
    return pod
