"""Which hints are worth a read."""

from __future__ import annotations

import pytest

from glasslet.runtime.model import ContainerPhase, ObservedPod
from glasslet.runtime.observed.news import is_news, is_over
from glasslet.runtime.protocols import RuntimeHint
from tests.builders.observed import exited_container, observed_container, observed_pod, observed_sandbox

CREATED = observed_pod(observed_container(phase=ContainerPhase.CREATED))
RUNNING = observed_pod(observed_container())
EXITED = observed_pod(exited_container())
UNKNOWN = observed_pod(observed_container(phase=ContainerPhase.UNKNOWN))
DEAD_SANDBOX = observed_pod(sandboxes=(observed_sandbox(ready=False),))


@pytest.mark.parametrize(
    ("pod", "news"),
    [
        (CREATED, {"started", "stopped", "removed"}),
        (RUNNING, {"stopped", "removed"}),
        (EXITED, {"removed"}),
        (UNKNOWN, {"created", "started", "stopped", "removed"}),
        (observed_pod(), {"created", "started"}),
        (None, {"created", "started"}),
    ],
)
def test_only_steps_beyond_what_is_known_are_news(pod: ObservedPod | None, news: set[str]) -> None:
    steps = ("created", "started", "stopped", "removed")
    found = {step for step in steps if is_news(RuntimeHint(id="main-0", kind=f"container_{step}"), pod)}
    assert found == news


@pytest.mark.parametrize(("pod", "news"), [(RUNNING, {"stopped", "removed"}), (DEAD_SANDBOX, {"removed"})])
def test_sandboxes_go_the_same_way(pod: ObservedPod, news: set[str]) -> None:
    steps = ("created", "started", "stopped", "removed")
    found = {step for step in steps if is_news(RuntimeHint(id="sandbox-0", kind=f"container_{step}"), pod)}
    assert found == news


@pytest.mark.parametrize(
    "hint", [RuntimeHint(id="main-0", kind="container_oom"), RuntimeHint(kind="container_stopped")]
)
def test_what_is_no_step_of_something_known_is_always_news(hint: RuntimeHint) -> None:
    assert is_news(hint, EXITED)


def test_the_end_of_something_is_told_from_its_begin() -> None:
    ends = [RuntimeHint(id="x", kind=f"container_{kind}") for kind in ("stopped", "removed")]
    begins = [
        RuntimeHint(id="x", kind=kind) for kind in ("container_created", "container_started", "container_oom", "")
    ]
    assert all(map(is_over, ends))
    assert not any(map(is_over, begins))
