"""What a person is told."""

from __future__ import annotations

from datetime import UTC, datetime

from glasslet.identity.recovery import NodeFiles, recovery_steps, waiting_for_approval
from glasslet.identity.signing_objects import CLIENT_SIGNER, SERVING_SIGNER

EXPIRED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def place(bootstrap: str = "") -> NodeFiles:
    return NodeFiles(
        node="node-7",
        kubeconfig="/etc/kubernetes/kubelet.conf",
        bootstrap_kubeconfig=bootstrap,
        pair_file="/var/lib/kubelet/pki/kubelet-client-current.pem",
    )


def test_steps_without_bootstrap_credentials_bring_a_certificate_to_this_node() -> None:
    text = recovery_steps(place(), EXPIRED)
    for part in (
        "expired at 2026-01-02 03:04:05 UTC",
        "kubeadm kubeconfig user --org system:nodes --client-name system:node:node-7",
        "/etc/kubernetes/kubelet.conf",
        "/var/lib/kubelet/pki/kubelet-client-*.pem",
    ):
        assert part in text


def test_steps_with_bootstrap_credentials_renew_the_token() -> None:
    text = recovery_steps(place("/etc/kubernetes/bootstrap-kubelet.conf"), None)
    assert "kubeadm token create" in text
    assert "/etc/kubernetes/bootstrap-kubelet.conf" in text
    assert "no usable client certificate" in text


def test_waiting_request_says_how_to_approve_it() -> None:
    # behaviours.md §28: "approval is not automatic"
    text = waiting_for_approval("csr-x7k2p", SERVING_SIGNER)
    assert "kubectl certificate approve csr-x7k2p" in text
    assert "never approved by Kubernetes itself" in text
    assert "kube-controller-manager" in waiting_for_approval("csr-x7k2p", CLIENT_SIGNER)
