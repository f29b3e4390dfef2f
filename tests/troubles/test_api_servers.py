"""An API server that the node cannot use: the sentence names the obstacle, or the answer, and since when."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from glasslet.answers.states import Rule
from tests.builders.certificates import Authority
from tests.e2e.conftest import loopback_address
from tests.fakes.agent import NODE, Agent, free_port, running
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.registry import Registry
from tests.troubles.table import Plain, Trouble, each_chosen
from tests.troubles.world import ClusterWorld, World

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

AREA = "API server and node object"


@dataclass
class Dialled:
    """What an agent is given to reach its API server. `held` ends after the test."""

    folder: Path
    server: str = ""
    ca: str = ""
    user: Plain = field(default_factory=lambda: {"token": "node-a"})
    host: str = NODE
    configuration: Plain = field(default_factory=dict)
    held: ExitStack = field(default_factory=ExitStack)

    def kubeconfig(self) -> str:
        """Its path."""
        cluster = {"server": self.server, **({"certificate-authority": self.ca} if self.ca else {})}
        text = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": self.user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(text))
        return str(path)


def nobody_listens(it: Dialled) -> None:
    it.server = f"https://127.0.0.1:{free_port()}"


def unknown_host(it: Dialled) -> None:
    it.server = "https://no-such-server.invalid:6443"


def no_route(it: Dialled) -> None:
    # Documentation addresses (RFC 3849); the flow is closed for every machine without such a network.
    it.server = "https://[2001:db8::1]:6443"


def silent(it: Dialled) -> None:
    listener = it.held.enter_context(socket.create_server(("127.0.0.1", 0)))
    it.server = f"https://127.0.0.1:{listener.getsockname()[1]}"
    # How long the agent waits for an answer follows from these.
    it.configuration = {"nodeStatusUpdateFrequency": "2s"}


def hangs_up(it: Dialled) -> None:
    listener = it.held.enter_context(socket.create_server(("127.0.0.1", 0)))

    def run() -> None:
        with contextlib.suppress(OSError):
            while True:
                listener.accept()[0].close()

    threading.Thread(target=run, daemon=True).start()
    it.server = f"http://127.0.0.1:{listener.getsockname()[1]}"


def _serve(it: Dialled, status: int, context: ssl.SSLContext | None) -> str:
    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = do_PUT = do_PATCH = _any  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Handshakes that fail are the trouble."""

    server = Quiet(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    it.held.callback(server.server_close)
    it.held.callback(server.shutdown)
    return f"127.0.0.1:{server.server_port}"


def _secured(it: Dialled, authority: Authority, begins: timedelta, ends: timedelta, name: str = "127.0.0.1") -> None:
    """A server with a certificate that is valid from now + `begins` to now + `ends`."""
    pair = authority.issue(it.folder, server=True, address=name, begins=begins, life=ends)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    it.server = f"https://{_serve(it, 200, context)}"


HOUR = timedelta(hours=1)


def plain_http(it: Dialled) -> None:
    it.server = f"https://{_serve(it, 200, None)}"


def untrusted(it: Dialled) -> None:
    it.ca = Authority("another").write(it.folder / "another.crt")
    _secured(it, Authority("the servers'"), -HOUR, HOUR)


def expired(it: Dialled) -> None:
    authority = Authority("ca")
    it.ca = authority.write(it.folder / "ca.crt")
    _secured(it, authority, -2 * HOUR, -HOUR)


def not_yet(it: Dialled) -> None:
    authority = Authority("ca")
    it.ca = authority.write(it.folder / "ca.crt")
    _secured(it, authority, HOUR, 2 * HOUR)


def other_name(it: Dialled) -> None:
    authority = Authority("ca")
    it.ca = authority.write(it.folder / "ca.crt")
    _secured(it, authority, -HOUR, HOUR, name="127.0.0.99")


def broken(it: Dialled) -> None:
    it.server = f"http://{_serve(it, 503, None)}"


def busy(it: Dialled) -> None:
    it.server = f"http://{_serve(it, 429, None)}"


def expired_client(it: Dialled) -> None:
    certificate, key = Authority("ca").issue(it.folder, common_name=f"system:node:{NODE}", begins=-2 * HOUR, life=-HOUR)
    it.user = {"client-certificate": certificate, "client-key": key}
    it.server = f"http://{_serve(it, 401, None)}"


def away(name: str, made: str, *says: str, rule: Rule = Rule.API_UNREACHABLE, quick: bool = False) -> Trouble:
    """An agent that starts with such an API server."""
    return Trouble(name=name, made=made, rule=rule, says=(f"{NODE} is NotReady for the cluster: ", *says), quick=quick)


CERTIFICATE = "has a certificate that the node does not accept: "
ALONE: dict[Trouble, Callable[[Dialled], None]] = {
    away("api-refused", "no process listens at the API server's address",
         "the API server https://127.0.0.1:", "refuses the connection: no process listens there", quick=True)
    : nobody_listens,
    away("api-unknown-host", "the API server's name does not exist in DNS",
         "host no-such-server.invalid of the API server", "is unknown"): unknown_host,
    away("api-no-route", "there is no route to the API server", "there is no way to the API server"): no_route,
    away("api-silent", "the API server takes connections and does not answer", "does not answer in time"): silent,
    away("api-hangs-up", "the API server closes every connection", "closes connections without an answer"): hangs_up,
    away("api-no-tls", "the API server's port speaks no TLS", "does not speak TLS as the node does"): plain_http,
    away("api-untrusted", "the API server's certificate is of another CA", CERTIFICATE): untrusted,
    away("api-expired", "the API server's certificate has expired", CERTIFICATE, "expired"): expired,
    away("api-not-yet", "the API server's certificate is not valid yet: a clock is wrong",
         CERTIFICATE, "not yet valid"): not_yet,
    away("api-other-name", "the API server's certificate is for another address", CERTIFICATE, "not valid for")
    : other_name,
    away("api-503", "the API server answers 503", "answers 503"): broken,
    Trouble(name="client-certificate-expired", made="the node's client certificate had expired when the agent started",
            rule=Rule.CERTIFICATE_EXPIRED, says=("its client certificate expired", ", since ")): expired_client,
    away("api-429", "the API server answers 429", "limits requests (429)"): busy,
}  # fmt: skip


class NodeWorld(World):
    """Troubles of the node itself."""

    def shows_node(self, trouble: Trouble) -> Plain:
        """Asks about the node until the answer is the expected one; it is the first of the whole node's troubles."""
        verdict = self.shows(trouble, "/node/why")
        assert verdict["nextStep"]
        first = (self.ask("/why") or {})["troubles"][0]
        assert (first["subject"], first["wrong"]) == ("node", True)
        return verdict


@contextlib.contextmanager
def dialling(it: Dialled, containerd: PrivateContainerd) -> Iterator[NodeWorld]:
    """An agent that has such an API server."""
    agent = Agent(it.folder / "a", containerd, **{"address": loopback_address(), **it.configuration})
    agent.flags = ("--kubeconfig", it.kubeconfig(), "--hostname-override", it.host, "--node-ip", loopback_address())
    with it.held, Registry(it.folder) as registry, running(agent, containerd):
        yield NodeWorld(agent, containerd, registry, it.folder)


@each_chosen(tuple(ALONE))
def test_an_api_server_out_of_reach_is_named_with_its_obstacle(
    containerd: PrivateContainerd, tmp_path: Path, trouble: Trouble
) -> None:
    it = Dialled(tmp_path)
    ALONE[trouble](it)
    with dialling(it, containerd) as world:
        world.shows_node(trouble)


def wrong_token(it: Dialled) -> None:
    it.user = {"token": "of-nobody"}


def no_user(it: Dialled) -> None:
    it.user = {}


def another_node(it: Dialled, world: ClusterWorld) -> None:
    known = yaml.safe_load(Path(world.plane.node_kubeconfig).read_text())
    it.user = known["users"][0]["user"]
    it.host = "node-b"


TOKEN = Trouble(
    name="api-unauthorized",
    made="the token of the node's kubeconfig is not good",
    rule=Rule.CREDENTIALS_REFUSED,
    says=("does not accept the node's credentials (401: Unauthorized)",),
)
NO_USER = Trouble(
    name="api-forbidden",
    made="the node's kubeconfig has no user, and anonymous may not register",
    rule=Rule.REGISTRATION_REFUSED,
    says=("is not a node of the cluster: when it registers, the API server", "forbids it (403", "system:anonymous"),
)
OTHER_NODE = Trouble(
    name="api-other-node",
    made="the node's kubeconfig is for a node of another name",
    rule=Rule.REGISTRATION_REFUSED,
    says=("forbids it (403", "node-b"),
)
REFUSALS: dict[Trouble, Callable[[Dialled, ClusterWorld], None]] = {
    TOKEN: lambda it, _: wrong_token(it),
    NO_USER: lambda it, _: no_user(it),
    OTHER_NODE: another_node,
}


@each_chosen(tuple(REFUSALS))
def test_an_api_server_that_refuses_the_node_is_quoted(cluster: ClusterWorld, tmp_path: Path, trouble: Trouble) -> None:
    known = yaml.safe_load(Path(cluster.plane.node_kubeconfig).read_text())["clusters"][0]["cluster"]
    it = Dialled(tmp_path, server=known["server"], ca=cluster.plane.ca)
    REFUSALS[trouble](it, cluster)
    # It runs beside the cluster's node, whose pods it must not find: a runtime of its own would take long to start.
    cluster.agent.kill()
    try:
        with dialling(it, cluster.containerd) as world:
            world.shows_node(trouble)
    finally:
        cluster.agent.start()


UNBORN = Trouble(
    name="node-not-created",
    made="registerNode is false, and no one created the Node",
    rule=Rule.NOT_REGISTERED,
    says=("the API server", "has no Node of this name, and registerNode is false"),
    dated=False,
)
DELETED_NODE = Trouble(
    name="node-deleted",
    made="the Node is deleted, and registerNode is false",
    rule=Rule.NOT_REGISTERED,
    says=("its Node was deleted, and registerNode is false",),
)
NO_LEASE = Trouble(
    name="lease-refused",
    made="the API server refuses to renew the node's lease (an admission policy)",
    rule=Rule.LEASE_FAILING,
    says=("its lease is not renewed, because the API server", "no heartbeats today"),
)
TROUBLES = (*ALONE, *REFUSALS, UNBORN, DELETED_NODE, NO_LEASE)


@each_chosen((UNBORN,))
def test_a_node_that_no_one_creates_or_that_was_deleted_is_no_node(
    cluster: ClusterWorld, tmp_path: Path, trouble: Trouble
) -> None:
    known = yaml.safe_load(Path(cluster.plane.node_kubeconfig).read_text())
    it = Dialled(tmp_path, known["clusters"][0]["cluster"]["server"], cluster.plane.ca, known["users"][0]["user"])
    it.configuration = {"registerNode": False}
    cluster.agent.kill()
    try:
        cluster.plane.kubectl("delete", "node", NODE, "--ignore-not-found")
        with dialling(it, cluster.containerd) as world:
            world.shows_node(trouble)
            cluster.plane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
            time.sleep(3)
            cluster.plane.kubectl("delete", "node", NODE)
            world.shows_node(DELETED_NODE)
    finally:
        cluster.agent.start()


POLICY: Plain = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "no-heartbeats"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["coordination.k8s.io"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["leases"],
                }
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-node-lease"}},
        },
        "validations": [{"expression": "false", "message": "no heartbeats today", "reason": "Forbidden"}],
    },
}
BINDING: Plain = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "no-heartbeats"},
    "spec": {"policyName": "no-heartbeats", "validationActions": ["Deny"]},
}


@each_chosen((NO_LEASE,))
def test_a_lease_that_is_refused_is_quoted(cluster: ClusterWorld, trouble: Trouble) -> None:
    cluster.plane.apply(POLICY, BINDING)
    try:
        world = NodeWorld(cluster.agent, cluster.containerd, cluster.registry, cluster.folder)
        world.shows_node(trouble)
    finally:
        cluster.plane.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "no-heartbeats")
