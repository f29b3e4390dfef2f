"""A pod that can be decoded is refused, admitted, specified and shown; nothing but a ConfigError is raised."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings

from glasslet.admission.candidate import Candidate
from glasslet.admission.predicates import predicates
from glasslet.api.codec import DecodeError, convert, encode
from glasslet.api.defaults.pod import default_pod
from glasslet.api.node import Node
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.api.validation.pod import pod_errors
from glasslet.exchange.facts import StatusFacts
from glasslet.exchange.volume import MountedVolume
from glasslet.podspec.container import container_spec
from glasslet.podspec.demand import pod_demand
from glasslet.podspec.dns import form_dns
from glasslet.podspec.errors import MAX_MESSAGE, ConfigError
from glasslet.podspec.mounts import sub_paths
from glasslet.podspec.sandbox import sandbox_spec
from glasslet.probes.kinds import in_words
from glasslet.probes.schedule import timing_of
from glasslet.probes.wanted import wanted_probes
from glasslet.status.builder import build_status
from tests.builders.hostile_pods import changed_pods, pods_with_numbers_at_their_ends
from tests.builders.podspec import container_request, node_facts, sandbox_request

NODE = convert({"metadata": {"name": "n", "labels": {"k": "5"}}, "spec": {"taints": [{"effect": "NoExecute"}]}}, Node)
ALLOCATABLE = {"cpu": Quantity(4), "memory": Quantity(2**33), "pods": Quantity(110)}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def attempt(convert_it: Callable[[], object]) -> None:
    """Calls it; a ConfigError must be short enough to show."""
    try:
        convert_it()
    except ConfigError as error:
        if len(error.message) > MAX_MESSAGE + 100:
            pytest.fail(f"a message of {len(error.message)} characters")


def run_through(value: Any) -> None:
    try:
        written = convert(value, Pod)
    except DecodeError:
        return
    for pod in (written, default_pod(written)):
        assert all(len(str(error)) < 10_000 for error in pod_errors(pod))
        predicates(Candidate(pod=pod, node=NODE, allocatable=ALLOCATABLE, others=(pod,)))
        pod_demand(pod)
        attempt(lambda pod=pod: form_dns(pod, node_facts()))  # type: ignore[misc]
        attempt(lambda pod=pod: sandbox_spec(sandbox_request(pod)))  # type: ignore[misc]
        volumes = {volume.name: MountedVolume(name=volume.name, path="/x") for volume in pod.spec.volumes}
        for index in range(len(pod.spec.containers)):
            request = container_request(pod, index=index, references_resolved=True, volumes=volumes)
            attempt(lambda request=request: sub_paths(request))  # type: ignore[misc]
            attempt(lambda request=request: container_spec(request))  # type: ignore[misc]
        facts = StatusFacts(pod=pod, now=NOW, previous=pod.status)
        assert encode(build_status(facts, "containerd"))
        for key, wanted in wanted_probes(facts).items():
            assert 0 < timing_of(wanted.probe).timeout < 2**31
            assert in_words(key.kind, wanted.probe)


@settings(max_examples=150, deadline=None)
@given(changed_pods())
def test_a_pod_with_strange_values_hurts_nothing(value: Any) -> None:
    run_through(value)


def test_numbers_and_quantities_at_both_ends_hurt_nothing() -> None:
    pods = pods_with_numbers_at_their_ends()
    assert len(pods) > 200
    for value in pods:
        run_through(value)


def test_a_long_message_is_cut() -> None:
    assert ConfigError("R", "x" * 1_000_000).message == f"{'x' * MAX_MESSAGE}... (1000000 characters)"
