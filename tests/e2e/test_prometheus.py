"""A real Prometheus beside a real node: discovery, scrapes, rules and dashboard as they come with glasslet."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import cluster_member, joined
from tests.fakes.agent import NODE, Agent, busybox_pod, free_port
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, is_ready
from tests.fakes.prometheus import RULES, Prometheus, dashboard_queries, program

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(900)]

HOWTO = Path("docs/howto/prometheus.md")
EMPTY_WITHOUT_TROUBLE = {"Runtime calls that fail", "Containers that could not be started", "Image pulls"}
"""Panels that are empty as long as nothing fails and nothing is pulled."""


def test_rules_do_what_their_tests_say() -> None:
    promtool = program("promtool")
    for words in (("check", "rules", "glasslet.rules.yaml"), ("test", "rules", "glasslet.rules.test.yaml")):
        done = subprocess.run([promtool, *words], cwd=RULES.parent, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def watched(controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path) -> Iterator[Agent]:
    """A Ready node that asks the API server who its clients are and what they may, as kubeadm sets it up."""
    program("prometheus")
    authentication = {
        "x509": {"clientCAFile": controlplane.ca},
        "webhook": {"enabled": True},
        "anonymous": {"enabled": False},
    }
    agent = cluster_member(
        controlplane, containerd, tmp_path / "a", authentication=authentication, authorization={"mode": "Webhook"}
    )
    with joined(controlplane, containerd, agent):
        yield agent


@pytest.fixture
def prometheus(watched: Agent, controlplane: ControlPlane, tmp_path: Path) -> Iterator[Prometheus]:
    """One with the scrape configuration of docs/howto/prometheus.md and the rules of contrib, in a hurry."""
    made = Prometheus(tmp_path, configuration(controlplane, tmp_path), free_port())
    try:
        yield made
    finally:
        made.stop()


def configuration(controlplane: ControlPlane, folder: Path) -> dict[str, Any]:
    """As documented. Only where the API server and the token are differs from a pod in a cluster, and the pace."""
    documented = re.findall(r"```yaml\n(.*?)```", HOWTO.read_text(), re.DOTALL)
    scrapes, role = yaml.safe_load(documented[0]), yaml.safe_load(documented[1])
    name = role["metadata"]["name"]
    account = {"kind": "ServiceAccount", "name": "prometheus", "namespace": "default"}
    controlplane.apply(
        role,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "prometheus", "namespace": "default"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [account],
        },
    )
    token = folder / "token"
    token.write_text(controlplane.kubectl("create", "token", "prometheus"))
    server = controlplane.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
    access = {"authorization": {"credentials_file": str(token)}}
    for job in scrapes["scrape_configs"]:
        job |= {**access, "tls_config": {"ca_file": controlplane.ca, "insecure_skip_verify": True}}
        job["kubernetes_sd_configs"][0] |= {
            **access,
            "api_server": server,
            "tls_config": {"ca_file": controlplane.ca},
        }
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules_in_a_hurry(folder))],
        **scrapes,
    }


def rules_in_a_hurry(folder: Path) -> Path:
    """The rules of contrib; what must hold for minutes there must hold for two seconds."""
    file = folder / "rules.yaml"
    file.write_text(re.sub(r"^    for: .*$", "    for: 2s", RULES.read_text(), flags=re.MULTILINE))
    return file


def test_a_node_is_found_scraped_and_its_troubles_raise_alerts(
    prometheus: Prometheus, watched: Agent, controlplane: ControlPlane
) -> None:
    # Every endpoint is read without an error, or a sample that Prometheus would not take.
    jobs = {"kubelet", "cadvisor", "kubelet-resource", "kubelet-probes", "kubelet-slis"}
    prometheus.wait_for("up == 1", lambda found: {labels["job"] for labels, _ in found} == jobs)
    controlplane.apply(busybox_pod("watched", nodeName=NODE, automountServiceAccountToken=False))
    prometheus.wait_for('container_memory_working_set_bytes{job="cadvisor", pod="watched", container="main"} > 0')
    prometheus.wait_for('container_memory_working_set_bytes{job="kubelet-resource", pod="watched"} > 0')
    prometheus.wait_for('glasslet_station_passes_total{station="sandbox"} >= 1')
    assert all(error == "" for error in prometheus.targets().values())

    # Every panel of the dashboard shows something.
    for title, expressions in dashboard_queries().items():
        for expression in expressions:
            filled = expression.replace('"$job"', '"kubelet"').replace('"$instance"', '".*"')
            filled = filled.replace("$__rate_interval", "1m")
            if title in EMPTY_WITHOUT_TROUBLE or filled.endswith("> 0"):
                prometheus.query(filled)
            else:
                prometheus.wait_for(filled)

    # Every rule can be evaluated; a healthy node raises nothing.
    rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in rules if rule["health"] != "ok"} == set()
    ours = 'ALERTS{alertstate="firing", alertname=~"Glasslet.*|KubeletDown|KubeletUnreachable"}'
    prometheus.wait_for(ours, lambda found: not found)

    # A manifest that cannot be read is a finding, as long as it is there.
    watched.put("kind: Pod\nspec: nonsense\n", "broken.yaml")
    prometheus.wait_for('ALERTS{alertname="GlassletAgentFinding", alertstate="firing"}')
    watched.remove("broken")
    prometheus.wait_for('ALERTS{alertname="GlassletAgentFinding"}', lambda found: not found)

    # A node that does not answer is unreachable, and the only one: none is scraped.
    watched.kill()
    prometheus.wait_for('ALERTS{alertname="KubeletUnreachable", alertstate="firing"}')
    prometheus.wait_for('ALERTS{alertname="KubeletDown", alertstate="firing"}')
    watched.start()
    controlplane.wait_for(NODE, is_ready, kind="node")
    prometheus.wait_for('ALERTS{alertname=~"KubeletUnreachable|KubeletDown"}', lambda found: not found)
