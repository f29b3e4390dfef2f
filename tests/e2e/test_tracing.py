"""Spans of a pod's start reach an OpenTelemetry collector; the runtime gets their context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.agent import NODE, agent_on, busybox_pod
from tests.fakes.collector import running_collector
from tests.fakes.containerd import PrivateContainerd

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
