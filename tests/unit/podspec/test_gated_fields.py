from __future__ import annotations

from glasslet.api.container import ContainerRestartRule, EphemeralContainer
from glasslet.api.env import EnvVar, EnvVarSource, FileKeySelector
from glasslet.api.lifecycle import Lifecycle, LifecycleHandler, SleepAction
from glasslet.api.pod import PodResourceClaim
from glasslet.podspec.gated_fields import effective_pod
from tests.builders.pod import container, pod, sidecar

HOOK = LifecycleHandler(sleep=SleepAction(seconds=1))
FROM_FILE = EnvVar(name="A", value_from=EnvVarSource(file_key_ref=FileKeySelector(volume_name="v", path="p", key="k")))
USES_ALL = pod(
    container(
        restart_policy="Never",
        restart_policy_rules=(ContainerRestartRule(action="Restart"),),
        lifecycle=Lifecycle(pre_stop=HOOK, stop_signal="SIGUSR1"),
        env=(EnvVar(name="B", value="b"), FROM_FILE),
    ),
    init=(sidecar(), container("setup", restart_policy="OnFailure")),
    hostname_override="other.example",
    resource_claims=(PodResourceClaim(name="gpu", resource_claim_name="gpu-1"),),
)


def off(gate: str) -> bool:
    return False


def test_nothing_changes_where_the_gates_are_on() -> None:
    assert effective_pod(USES_ALL, lambda gate: True) is USES_ALL


def test_a_pod_that_uses_none_of_them_stays_the_same_object() -> None:
    plain = pod(container(lifecycle=Lifecycle(pre_stop=HOOK)), init=(sidecar(),))
    assert effective_pod(plain, off) is plain


def test_what_is_switched_off_is_as_if_it_were_not_there() -> None:
    # behaviours.md §31: "EventedPLEG, MemoryQoS, ContainerRestartRules, ContainerStopSignals, EnvFiles,
    # HostnameOverride off."
    spec = effective_pod(USES_ALL, off).spec
    [main] = spec.containers
    assert spec.hostname_override is None
    assert spec.resource_claims == ()
    assert (main.restart_policy, main.restart_policy_rules) == (None, ())
    assert main.lifecycle == Lifecycle(pre_stop=HOOK)
    assert main.env == (EnvVar(name="B", value="b"), EnvVar(name="A"))
    assert spec.init_containers[1].restart_policy is None


def test_ephemeral_containers_are_no_exception() -> None:
    one = pod(ephemeral_containers=(EphemeralContainer(name="look", env=(FROM_FILE,)),))
    assert effective_pod(one, off).spec.ephemeral_containers[0].env == (EnvVar(name="A"),)
    assert effective_pod(one, lambda gate: True) is one


def test_sidecars_need_no_gate() -> None:
    assert effective_pod(USES_ALL, off).spec.init_containers[0] is USES_ALL.spec.init_containers[0]


def test_each_gate_brings_back_its_own_field_only() -> None:
    spec = effective_pod(USES_ALL, lambda gate: gate == "ContainerStopSignals").spec
    assert spec.containers[0].lifecycle == Lifecycle(pre_stop=HOOK, stop_signal="SIGUSR1")
    assert spec.containers[0].restart_policy is None
    assert spec.hostname_override is None
