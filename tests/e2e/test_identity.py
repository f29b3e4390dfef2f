"""A node that has nothing but a bootstrap token: it joins, renews its certificates, and judges its visitors.

The control plane signs for two minutes only, so that two rotations fit into a test: it dates certificates back by
five minutes, and each is renewed within 78 s.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from glasslet.identity.certificate import Certificate, read_certificates
from tests.e2e.conftest import cluster_member, loopback_address, running_control_plane
from tests.e2e.test_api_pods import api_pod
from tests.fakes.agent import NODE
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, is_ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(400)]

LIFE = 120
LEASE = 40
"""Seconds after which a node without a heartbeat is nobody's any more; it is renewed every ten."""
TOKEN_ID, TOKEN_SECRET = "abcdef", "0123456789abcdef"
BOOTSTRAPPERS = "system:bootstrappers:kubeadm:default-node-token"


def binding(name: str, role: str, group: str) -> dict[str, Any]:
    api = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": api, "kind": "Group", "name": group}],
    }


def what_kubeadm_makes() -> list[dict[str, Any]]:
    """A bootstrap token, and who may ask for and renew node certificates."""
    token = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": f"bootstrap-token-{TOKEN_ID}", "namespace": "kube-system"},
        "stringData": {
            "token-id": TOKEN_ID,
            "token-secret": TOKEN_SECRET,
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": BOOTSTRAPPERS,
        },
    }
    approver = "system:certificates.k8s.io:certificatesigningrequests"
    return [
        token,
        binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", BOOTSTRAPPERS),
        binding("kubeadm:node-autoapprove-bootstrap", f"{approver}:nodeclient", BOOTSTRAPPERS),
        binding("kubeadm:node-autoapprove-certificate-rotation", f"{approver}:selfnodeclient", "system:nodes"),
    ]


@contextlib.contextmanager
def control_plane(life: int) -> Iterator[ControlPlane]:
    """One that signs for so many seconds."""
    with running_control_plane("-controller-manager-flags", f"--cluster-signing-duration={life}s") as made:
        made.apply(*what_kubeadm_makes())
        yield made


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane(LIFE) as made:
        yield made


class Joining:
    """An agent that has a token and no certificate."""

    def __init__(self, plane: ControlPlane, runtime: PrivateContainerd, folder: Path, **changed: object) -> None:
        self.plane = plane
        webhook = {"webhook": {"enabled": True}, "anonymous": {"enabled": False}}
        access = {
            "authentication": {"x509": {"clientCAFile": plane.ca}, **webhook},
            "authorization": {"mode": "Webhook"},
        }
        self.agent = cluster_member(
            plane, runtime, folder, **{"rotateCertificates": True, "serverTLSBootstrap": True, **access, **changed}
        )
        self.kubeconfig = folder / "kubelet.conf"
        self.bootstrap = folder / "bootstrap.conf"
        self.pki = folder / "root" / "pki"
        self.give_token(f"{TOKEN_ID}.{TOKEN_SECRET}")
        self.agent.flags = (
            *("--kubeconfig", str(self.kubeconfig), "--bootstrap-kubeconfig", str(self.bootstrap)),
            *("--node-ip", loopback_address()),
        )

    def give_token(self, token: str) -> None:
        config = yaml.safe_load(Path(self.plane.kubeconfig).read_text())
        config["users"] = [{"name": config["contexts"][0]["context"]["user"], "user": {"token": token}}]
        self.bootstrap.write_text(yaml.safe_dump(config))

    def pair(self, kind: str) -> Certificate:
        """What the current pair says."""
        return read_certificates((self.pki / f"kubelet-{kind}-current.pem").read_bytes())[0]

    def pairs(self, kind: str) -> list[str]:
        """All pairs there ever were."""
        return sorted(path.name for path in self.pki.glob(f"kubelet-{kind}-2*.pem"))

    def requests(self, signer: str) -> list[dict[str, Any]]:
        """Signing requests of one signer."""
        items = json.loads(self.plane.kubectl("get", "csr", "-o", "json"))["items"]
        return [item for item in items if item["spec"]["signerName"] == signer]

    def approve_serving(self) -> int:
        """Approves what waits; how many that was."""
        waiting = [
            one["metadata"]["name"]
            for one in self.requests("kubernetes.io/kubelet-serving")
            if not one.get("status", {}).get("conditions")
        ]
        for name in waiting:
            self.plane.kubectl("certificate", "approve", name)
        return len(waiting)

    def wait_for(self, what: Any, seconds: float = 120.0) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < deadline, f"not in {seconds} s\n{self.agent.tail_of_log(40)}"
            time.sleep(0.2)
        return found

    def heartbeat(self, uid: str) -> float:
        """Unix time of the last renewal of the lease of the node with this UID, 0 before there is one; that of an
        earlier node of its name may not be collected yet."""
        lease = self.plane.get("lease", NODE, "kube-node-lease")
        if lease is None or [one["uid"] for one in lease["metadata"].get("ownerReferences", [])] != [uid]:
            return 0.0
        return datetime.fromisoformat(lease["spec"]["renewTime"]).timestamp()

    def serves(self) -> bool:
        """Whether the port is open with a certificate of the cluster."""
        try:
            return self.ask("/healthz") == 401
        except OSError:
            return False

    def refuses(self) -> bool:
        """Whether the port is open, but ends every handshake."""
        try:
            self.ask("/healthz")
        except OSError as error:
            return re.search(r"(?i)handshake|ssl", str(error)) is not None
        return False

    def ask(self, path: str, token: str = "", pair: Path | None = None) -> int:
        """The code of a request to the kubelet's own port, whose certificate is verified."""
        context = ssl.create_default_context(cafile=self.plane.ca)
        if pair is not None:
            context.load_cert_chain(pair)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"https://{loopback_address()}:{self.agent.port}{path}", headers=headers)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        try:
            with opener.open(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code


@contextlib.contextmanager
def member(plane: ControlPlane, runtime: PrivateContainerd, folder: Path) -> Iterator[Joining]:
    """A node that joins and is forgotten afterwards."""
    made = Joining(plane, runtime, folder)
    plane.forget_refusals()
    try:
        yield made
    finally:
        made.agent.kill()
        plane.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
        runtime.remove_all_pods()
        plane.kubectl("delete", "node", NODE, "--ignore-not-found")
        plane.kubectl("delete", "csr", "--all")


@pytest.fixture
def joining(plane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path) -> Iterator[Joining]:
    with member(plane, containerd, tmp_path) as made:
        yield made


def test_node_joins_with_a_token_and_gets_both_certificates(joining: Joining, plane: ControlPlane) -> None:
    joining.agent.start()
    plane.wait_for(NODE, is_ready, kind="node")
    assert joining.pair("client").subject.common_name == f"system:node:{NODE}"
    assert TOKEN_SECRET not in joining.kubeconfig.read_text()
    assert str(joining.pki / "kubelet-client-current.pem") in joining.kubeconfig.read_text()

    joining.wait_for(joining.refuses)
    assert joining.wait_for(joining.approve_serving) == 1
    joining.wait_for(joining.serves)
    assert joining.pair("server").subject.ip_addresses == (loopback_address(),)
    assert joining.ask("/healthz") == 401

    plane.apply(api_pod("talks", "echo hello; sleep 1000"))
    plane.wait_for("talks", is_ready)
    joining.wait_for(lambda: plane.kubectl("logs", "talks") == "hello\n")
    assert plane.kubectl("exec", "talks", "--", "echo", "inside") == "inside\n"
    assert plane.refusals() == []


def test_certificates_rotate_twice_without_a_gap_in_heartbeats(joining: Joining, plane: ControlPlane) -> None:
    joining.agent.start()
    plane.wait_for(NODE, is_ready, kind="node")
    stop = threading.Event()

    def approve() -> None:
        while not stop.wait(1.0):
            joining.approve_serving()

    approver = threading.Thread(target=approve)
    approver.start()
    try:
        heartbeats: set[float] = set()
        ready: set[bool] = set()
        deadline = time.monotonic() + 2.5 * LIFE
        while min(len(joining.pairs("client")), len(joining.pairs("server"))) < 3:
            assert time.monotonic() < deadline, joining.agent.tail_of_log(40)
            node = plane.get("node", NODE)
            ready.add(is_ready(node))
            if node is not None and (heard := joining.heartbeat(node["metadata"]["uid"])):
                heartbeats.add(heard)
            time.sleep(0.5)
        joining.wait_for(joining.serves)
    finally:
        stop.set()
        approver.join()
    gaps = [later - earlier for earlier, later in itertools.pairwise(sorted(heartbeats))]
    assert ready == {True}
    assert max(gaps) < LEASE
    assert plane.refusals() == []


def test_visitors_are_judged_by_the_api_server(joining: Joining, plane: ControlPlane) -> None:
    joining.agent.start()
    plane.wait_for(NODE, is_ready, kind="node")
    joining.wait_for(joining.approve_serving)
    joining.wait_for(joining.serves)
    plane.kubectl("create", "serviceaccount", "scraper")
    plane.kubectl("create", "clusterrole", "scraper", "--verb=get", "--resource=nodes/metrics")
    plane.kubectl(
        "create", "clusterrolebinding", "scraper", "--clusterrole=scraper", "--serviceaccount=default:scraper"
    )
    try:
        # What the node is answered before the API server itself knows of the binding holds for a while.
        check = ("can-i", "get", "nodes", "--subresource=metrics", "--as=system:serviceaccount:default:scraper")
        joining.wait_for(lambda: "yes" in plane.kubectl("auth", *check, check=False))
        token = plane.kubectl("create", "token", "scraper").strip()
        assert joining.ask("/metrics", token) == 200
        assert joining.ask("/pods", token) == 403
        assert joining.ask("/metrics", token + "x") == 401
        assert joining.ask("/metrics") == 401
        administrator = plane.folder / "both.pem"
        administrator.write_bytes(
            (plane.folder / "pki/admin.crt").read_bytes() + (plane.folder / "pki/admin.key").read_bytes()
        )
        assert joining.ask("/pods", pair=administrator) == 200
    finally:
        plane.kubectl("delete", "clusterrolebinding/scraper", "clusterrole/scraper", "serviceaccount/scraper")


def test_node_away_for_longer_than_its_certificate_comes_back_with_its_token(
    containerd: PrivateContainerd, tmp_path: Path
) -> None:
    with control_plane(20) as plane, member(plane, containerd, tmp_path) as joining:
        joining.agent.start()
        node = plane.wait_for(NODE, is_ready, kind="node")
        assert node is not None
        joining.agent.terminate()
        expires = joining.pair("client").not_after.timestamp()
        time.sleep(max(0.0, expires - time.time()) + 1)
        joining.agent.start()
        joining.wait_for(lambda: joining.pair("client").not_after.timestamp() > time.time())
        assert "the client certificate expired at" in joining.agent.log.read_text()
        joining.wait_for(lambda: joining.heartbeat(node["metadata"]["uid"]) > expires)


def test_wrong_token_ends_with_what_to_do(joining: Joining) -> None:
    joining.give_token("abcdef.ffffffffffffffff")
    joining.agent.flags = (*joining.agent.flags, "--rotate-certificates=false")
    joining.agent.start()
    joining.wait_for(lambda: joining.agent.exit_code() is not None)
    assert joining.agent.exit_code() == 1
    said = joining.agent.log.read_text()
    assert "Unauthorized" in said
    assert "ffffffff" not in said


def test_token_alone_is_enough_without_rotation(joining: Joining, plane: ControlPlane) -> None:
    joining.agent.flags = (*joining.agent.flags, "--rotate-certificates=false")
    joining.agent.start()
    plane.wait_for(NODE, is_ready, kind="node")
    names = [one["metadata"]["name"] for one in joining.requests("kubernetes.io/kube-apiserver-client-kubelet")]
    assert [name[:9] for name in names] == ["node-csr-"]
    assert subprocess.run(["kubectl", "get", "node", NODE, "--kubeconfig", str(joining.kubeconfig)]).returncode == 0
