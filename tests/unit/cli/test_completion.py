"""The names that a shell offers."""

from __future__ import annotations

import pytest

from glasslet.cli.agent_client import PodName
from glasslet.cli.completion import fitting

PODS = [PodName("default", "web"), PodName("default", "job"), PodName("kube-system", "job")]


@pytest.mark.parametrize(
    ("incomplete", "namespace", "offered"),
    [
        ("", "", ["default/job", "kube-system/job", "web"]),
        ("w", "", ["web"]),
        ("default/", "", ["default/job", "default/web"]),
        ("j", "kube-system", ["job"]),
        ("zzz", "", []),
    ],
)
def test_each_offered_text_names_one_pod(incomplete: str, namespace: str, offered: list[str]) -> None:
    assert fitting(PODS, incomplete, namespace=namespace) == offered
