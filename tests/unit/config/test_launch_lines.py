"""Launch lines that people have in their unit files and articles start here too."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.config.files import write

from glasslet.config.loading import Loaded, load

KUBEADM = """\
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization:
  mode: Webhook
  webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
cpuManagerReconcilePeriod: 0s
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMinimumGCAge: 0s
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}}, verbosity: 0}
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
"""


@pytest.fixture
def kubeadm_config(tmp_path: Path) -> str:
    return write(tmp_path / "config.yaml", KUBEADM)


def warned(loaded: Loaded) -> set[str]:
    return {notice.field for notice in loaded.warnings}


def test_the_debugger_line_of_1_2x_starts(kubeadm_config: str) -> None:
    loaded = load(
        [
            "--kubeconfig=/etc/kubernetes/kubelet.conf",
            f"--config={kubeadm_config}",
            "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
            "--v=4",
        ]
    )
    assert loaded.problems == ()
    assert (loaded.configuration.logging.verbosity, loaded.configuration.cgroup_driver) == (4, "systemd")
    assert loaded.configuration.logging.flush_frequency == 5.0


def test_log_levels_of_single_files_start_without_a_config_file() -> None:
    loaded = load(["--v=4", "--vmodule=kubelet=5,volume*=6"])
    assert (loaded.problems, loaded.warnings) == ((), ())
    assert [item.verbosity for item in loaded.configuration.logging.vmodule] == [5, 6]


def test_the_line_of_1_25_with_cri_dockerd_starts_with_warnings(kubeadm_config: str) -> None:
    loaded = load(
        [
            "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
            "--kubeconfig=/etc/kubernetes/kubelet.conf",
            f"--config={kubeadm_config}",
            "--cgroup-driver=systemd",
            "--container-runtime=remote",
            "--container-runtime-endpoint=unix:///var/run/cri-dockerd.sock",
            "--pod-infra-container-image=registry.example.com/pause:3.8",
            "--node-ip=192.168.141.128",
            "--hostname-override=node1",
            "--v=2",
        ]
    )
    assert loaded.problems == ()
    assert loaded.configuration.container_runtime_endpoint == "unix:///var/run/cri-dockerd.sock"
    assert (loaded.options.hostname_override, loaded.options.node_ip) == ("node1", "192.168.141.128")
    assert warned(loaded) == {
        "--cgroup-driver",
        "--container-runtime",
        "--container-runtime-endpoint",
        "--pod-infra-container-image",
    }


def test_the_kubeadm_line_of_1_23_with_dockershim_starts_with_warnings(kubeadm_config: str) -> None:
    loaded = load(
        [
            "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
            "--kubeconfig=/etc/kubernetes/kubelet.conf",
            f"--config={kubeadm_config}",
            "--cgroup-driver=cgroupfs",
            "--hostname-override=192.168.180.128",
            "--network-plugin=cni",
            "--pod-infra-container-image=k8s.gcr.io/pause:3.6",
        ]
    )
    assert loaded.problems == ()
    (notice,) = [notice for notice in loaded.warnings if notice.field == "--network-plugin"]
    assert notice.message == "Flag --network-plugin was removed in v1.24 and has no effect: the runtime owns CNI"


def test_the_flags_of_tuning_guides_start_with_warnings() -> None:
    argv = [
        "--pleg-relist-period=1s",
        "--pod-manifest-path=/etc/kubernetes/manifests",
        "--image-pull-progress-deadline",
        "1m",
    ]
    loaded = load([*argv, "--cni-bin-dir=/opt/cni/bin", "--max-open-files=1000000"])
    assert loaded.problems == ()
    assert loaded.configuration.static_pod_path == "/etc/kubernetes/manifests"
    assert len(loaded.warnings) == 5
