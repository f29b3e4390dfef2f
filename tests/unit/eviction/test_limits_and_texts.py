"""Limits of local storage, and the texts of evictions."""

from __future__ import annotations

from msgspec.structs import replace

from glasslet.api.pod import Pod
from glasslet.eviction.eviction_text import eviction_text
from glasslet.eviction.local_limits import limit_exceeded
from glasslet.eviction.ranking import EvictionCandidate, rank
from glasslet.eviction.signals import Observation, Signal
from glasslet.eviction.thresholds import Threshold
from glasslet.stats.disks.storage import DiskLayout
from tests.builders.eviction import GIB, MIB, empty_dir, running, using, wanting


def exceeded(pod: Pod, *, layers_apart: bool = False, **use: object) -> tuple[str, str]:
    found = limit_exceeded(pod, using(pod, **use), layers_apart=layers_apart)  # type: ignore[arg-type]
    return (found.signal, found.message) if found is not None else ("", "")


def test_an_empty_dir_above_its_size() -> None:
    # behaviours.md §15: "limits: `Usage of EmptyDir volume "<v>" exceeds the limit "<q>". `,"
    pod = wanting("scratch", volumes=(empty_dir("data", size_limit="1Mi"),))
    assert exceeded(pod, volumes={"data": MIB}) == ("", "")
    assert exceeded(pod, volumes={"data": MIB + 1}) == (
        "emptydirfs.limit",
        'Usage of EmptyDir volume "data" exceeds the limit "1Mi". ',
    )


def test_a_pod_above_the_limits_of_its_containers() -> None:
    # behaviours.md §15: "`Pod ephemeral local storage usage exceeds the total limit of containers <q>. `,"
    pod = wanting("full", limit="10Mi")
    assert exceeded(pod, layer=6 * MIB, logs=4 * MIB) == ("", "")
    assert exceeded(pod, layer=6 * MIB, logs=5 * MIB) == (
        "ephemeralpodfs.limit",
        "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ",
    )


def test_a_container_above_its_own_limit() -> None:
    # behaviours.md §15: "`Container <c> exceeded its local ephemeral storage limit "<q>". `."
    pod = wanting("one-of-two", limit="10Mi")
    roomy = wanting("other", limit="90Mi").spec.containers[0]
    pod = replace(pod, spec=replace(pod.spec, containers=(*pod.spec.containers, replace(roomy, name="side"))))
    assert exceeded(pod, layer=8 * MIB, logs=4 * MIB) == (
        "ephemeralcontainerfs.limit",
        'Container main exceeded its local ephemeral storage limit "10Mi". ',
    )
    # behaviours.md §15: "(writable layer only without separate imagefs)."
    assert exceeded(pod, layers_apart=True, layer=8 * MIB, logs=4 * MIB) == ("", "")


def test_the_message_names_threshold_and_offenders() -> None:
    # behaviours.md §15: "Message parts: `The node was low on resource: <r>. `, `Threshold quantity: <q>, available:
    # <q>. `, per container `Container <c> was using <q>, request is <q>, has larger consumption of <r>. `"
    # behaviours.md §15: "Event annotations: offending_containers, offending_containers_usage, starved_resource."
    (one,) = rank([running(wanting("hog", memory="64Mi"), memory=128 * MIB)], Signal.MEMORY, DiskLayout())
    seen = Observation(signal=Signal.MEMORY, available=90 * MIB, capacity=8 * GIB)
    text = eviction_text(one, Threshold(signal=Signal.MEMORY, amount="100Mi"), seen)
    assert text.message == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
        "Container main was using 128Mi, request is 64Mi, has larger consumption of memory. "
    )
    assert text.annotations == {
        "starved_resource": "memory",
        "offending_containers": "main",
        "offending_containers_usage": "128Mi",
    }


def test_inodes_and_process_ids_name_no_container_and_count_in_thousands() -> None:
    (one,) = rank([running(wanting("forks"), processes=900)], Signal.PIDS, DiskLayout())
    seen = Observation(signal=Signal.PIDS, available=65000, capacity=131072)
    text = eviction_text(one, Threshold(signal=Signal.PIDS, amount="50%"), seen)
    assert text.message == "The node was low on resource: pids. Threshold quantity: 64Ki, available: 65k. "
    assert text.annotations["offending_containers"] == ""


def test_a_pod_without_figures_has_no_annotations() -> None:
    (one,) = rank([EvictionCandidate(pod=wanting("waiting"))], Signal.NODEFS, DiskLayout())
    text = eviction_text(one, Threshold(signal=Signal.NODEFS, amount="1Gi"), None)
    assert (text.message, text.annotations) == ("The node was low on resource: ephemeral-storage. ", {})
