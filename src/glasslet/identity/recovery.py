"""The steps for an operator when a node cannot get or renew its certificates, with this node's names."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from glasslet.identity.signing_objects import SERVING_SIGNER


class NodeFiles(Struct, frozen=True, kw_only=True):
    """This node and its files."""

    node: str
    kubeconfig: str
    bootstrap_kubeconfig: str
    pair_file: str


def waiting_for_approval(request: str, signer: str) -> str:
    """A signing request that is not approved."""
    why = (
        "requests for serving certificates are never approved by Kubernetes itself"
        if signer == SERVING_SIGNER
        else "the approving controller runs in kube-controller-manager; it approves nodes whose group is bound to "
        "ClusterRole system:certificates.k8s.io:certificatesigningrequests:nodeclient (or selfnodeclient)"
    )
    return (
        f"certificate signing request {request} waits for approval; look at it with `kubectl get csr {request}`, "
        f"approve it with `kubectl certificate approve {request}` ({why})"
    )


def recovery_steps(place: NodeFiles, expired: datetime | None) -> str:
    """The steps that give the node an identity again. `expired`: when its certificate did; None without a usable one.

    With bootstrap credentials those are what has to be renewed; without, a certificate has to be brought here."""
    state = (
        f"the client certificate of node {place.node} ({place.pair_file}) expired at {expired:%Y-%m-%d %H:%M:%S} UTC"
        if expired
        else f"node {place.node} has no usable client certificate ({place.pair_file})"
    )
    if place.bootstrap_kubeconfig:
        steps = [
            "on a control plane node: `kubeadm token create` (or make a bootstrap token Secret by hand)",
            f"put the token into {place.bootstrap_kubeconfig} (users[].user.token)",
            f"remove {place.kubeconfig}, start the kubelet again",
            "look for its request with `kubectl get csr`; approve it with `kubectl certificate approve NAME`",
        ]
    else:
        make = f"kubeadm kubeconfig user --org system:nodes --client-name system:node:{place.node}"
        steps = [
            f"on a control plane node: `{make} > kubelet.conf`",
            f"copy kubelet.conf to {place.kubeconfig} of this node",
            f"remove {_pairs(place.pair_file)}, start the kubelet again",
            "look for pending requests with `kubectl get csr`; approve with `kubectl certificate approve NAME`",
        ]
    numbered = "; ".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
    return f"{state}. To recover: {numbered}"


def _pairs(link: str) -> str:
    return link.replace("-current.pem", "-*.pem")
