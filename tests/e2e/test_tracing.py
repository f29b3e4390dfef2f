"""Spans of a pod's start reach an OpenTelemetry collector; the runtime gets their context."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.agent import NODE, agent_on, busybox_pod
from tests.fakes.collector import running_collector
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.real_collector import RealCollector, ReceivedSpan, ancestors

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

RUN = "runtime.v1.RuntimeService/RunPodSandbox"
START = "runtime.v1.RuntimeService/StartContainer"


async def test_a_pods_start_is_one_tree_of_spans(containerd: PrivateContainerd, tmp_path: Path) -> None:
    with running_collector() as collector:
        tracing = {"endpoint": f"127.0.0.1:{collector.port}", "samplingRatePerMillion": 1_000_000}
        with agent_on(containerd, tmp_path, tracing=tracing) as agent:
            agent.put(busybox_pod("web"))
            await agent.wait_for(lambda rows: bool(rows.get("web", {}).get("isReady")))
            spans = collector.wait_for(lambda spans: START in {span.name for span in spans} and synced(spans))
    by_id = {span.span_id: span for span in spans}

    def above(name: str) -> list[str]:
        span = next(span for span in spans if span.name == name)
        names = []
        while span.parent_span_id:
            span = by_id[span.parent_span_id]
            names.append(span.name)
        return names

    assert above(RUN) == ["sandbox", "syncPod"]
    assert above(START)[-1] == "syncPod"
    sandbox = next(span for span in spans if span.name == "sandbox")
    assert {entry.key: entry.value.string_value for entry in sandbox.attributes}["k8s.pod.name"] == f"web-{NODE}"
    assert collector.resource["service.name"] == "kubelet"
    assert "has no effect" not in agent.log.read_text()


async def test_the_runtimes_own_spans_stand_below_the_agents(
    newer_containerd: PrivateContainerd, real_collector: RealCollector, tmp_path: Path
) -> None:
    """Debian's containerd 1.6 is built without its tracing plugins."""
    endpoint = f"127.0.0.1:{real_collector.grpc_port}"
    newer_containerd.kill()
    newer_containerd.start(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{endpoint}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            "OTEL_SERVICE_NAME": "containerd",
        }
    )
    try:
        tracing = {"endpoint": endpoint, "samplingRatePerMillion": 1_000_000}
        with agent_on(newer_containerd, tmp_path, tracing=tracing) as agent:
            agent.put(busybox_pod("web"))
            await agent.wait_for(lambda rows: bool(rows.get("web", {}).get("isReady")))
            spans = real_collector.wait_for(lambda spans: all(chain(spans, call) for call in (RUN, START)))
    finally:
        newer_containerd.kill()
        newer_containerd.start()
    for call in (RUN, START):
        (served, *above) = chain(spans, call)
        assert (above[0].service, above[0].name) == ("kubelet", call)
        assert above[-1].name == "syncPod"
        assert {span.trace_id for span in above} == {served.trace_id}
        inner = [span for span in spans if span.parent == served.span_id]
        assert {span.service for span in inner} <= {"containerd"}
    assert [span.name for span in chain(spans, RUN)[1:]] == [RUN, "sandbox", "syncPod"]


def chain(spans: Sequence[ReceivedSpan], call: str) -> list[ReceivedSpan]:
    """The runtime's span of a call of the pod's start and what stands above it; empty until all of that has arrived."""
    for span in spans:
        if span.service == "containerd" and span.name == call and span.parent:
            with contextlib.suppress(KeyError):
                return [span, *ancestors(spans, span)]
    return []


async def test_without_a_rate_nothing_is_sent(containerd: PrivateContainerd, tmp_path: Path) -> None:
    with running_collector() as collector:
        tracing = {"endpoint": f"127.0.0.1:{collector.port}"}
        with agent_on(containerd, tmp_path, tracing=tracing) as agent:
            agent.put(busybox_pod("web"))
            await agent.wait_for(lambda rows: bool(rows.get("web", {}).get("isReady")))
            assert agent.terminate() == 0
        assert collector.spans == []


async def test_a_collector_that_is_away_holds_nothing_up(containerd: PrivateContainerd, tmp_path: Path) -> None:
    tracing = {"endpoint": "127.0.0.1:1", "samplingRatePerMillion": 1_000_000}
    with agent_on(containerd, tmp_path, tracing=tracing) as agent:
        agent.put(busybox_pod("web"))
        await agent.wait_for(lambda rows: bool(rows.get("web", {}).get("isReady")), seconds=30)
        assert agent.terminate() == 0


def synced(spans: list[Any]) -> bool:
    """Whether the sync that started the container has ended: a span is sent when it is over."""
    started = next(span for span in spans if span.name == START)
    return any(span.name == "syncPod" and span.trace_id == started.trace_id for span in spans)
