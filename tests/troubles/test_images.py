"""Troubles of images: each with a registry, a name or a runtime that is really so."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from glasslet.answers.states import Rule
from tests.e2e.conftest import loopback_address
from tests.fakes.agent import busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.troubles.table import Plain, Trouble, chosen, each_chosen
from tests.troubles.world import World, standalone_world

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

AREA = "Images"


def with_image(name: str, image: str | Callable[[World], str], **container: Any) -> Any:
    """The manifest of a pod with this image."""

    def manifest(world: World) -> Plain:
        made = busybox_pod(name)
        found = image if isinstance(image, str) else image(world)
        made["spec"]["containers"][0] |= {"image": found, **container}
        return made

    return manifest


TROUBLES = (
    Trouble(
        name="image-refused",
        made="the registry refuses the connection",
        rule=Rule.IMAGE_FAILED,
        says=("cannot get image 127.0.0.1:1/app:1 of container main: 127.0.0.1:1 refused the connection",),
        pod=with_image("image-refused", "127.0.0.1:1/app:1"),
        quick=True,
    ),
    Trouble(
        name="image-unknown-host",
        made="the registry's name does not exist in DNS",
        rule=Rule.IMAGE_FAILED,
        says=("host no-such-registry.invalid is unknown",),
        pod=with_image("image-unknown-host", "no-such-registry.invalid/app:1"),
    ),
    Trouble(
        name="image-no-tag",
        made="the registry has no such tag",
        rule=Rule.IMAGE_FAILED,
        says=("the registry has no such image or tag",),
        pod=with_image("image-no-tag", lambda world: world.registry.name("team/app", "2")),
        quick=True,
    ),
    Trouble(
        name="image-unauthorized",
        made="the registry asks for a login, and the pod has none",
        rule=Rule.IMAGE_FAILED,
        says=("did not accept the login (unauthorized)",),
        pod=with_image("image-unauthorized", lambda world: world.registry.name("secret/app", "1")),
        quick=True,
    ),
    Trouble(
        name="image-platform",
        made="the image is for another platform",
        rule=Rule.IMAGE_FAILED,
        says=("no variant for this node's platform",),
        pod=with_image("image-platform", lambda world: world.registry.name("team/other", "1")),
    ),
    Trouble(
        name="image-unknown-ca",
        made="the registry's certificate is signed by an unknown CA",
        rule=Rule.IMAGE_FAILED,
        says=("TLS with the registry fails: certificate signed by unknown authority",),
        pod=with_image("image-unknown-ca", lambda world: f"{tls_registry(world)}/app:1"),
    ),
    Trouble(
        name="image-http-registry",
        made="the registry speaks HTTP where the runtime wants TLS",
        rule=Rule.IMAGE_FAILED,
        says=("the registry speaks HTTP, not TLS",),
        pod=with_image("image-http-registry", lambda world: f"{plain_registry(world)}/app:1"),
    ),
    Trouble(
        name="image-registry-broken",
        made="the registry answers 500",
        rule=Rule.IMAGE_FAILED,
        says=("the registry answers 500",),
        pod=with_image("image-registry-broken", lambda world: f"{local_server(world, 500)}/app:1"),
    ),
    Trouble(
        name="image-too-many",
        made="the registry limits the rate of pulls (429)",
        rule=Rule.IMAGE_FAILED,
        says=("limits the rate of pulls (429)",),
        pod=with_image("image-too-many", lambda world: f"{local_server(world, 429)}/app:1"),
    ),
    Trouble(
        name="image-forbidden",
        made="the registry answers 403",
        rule=Rule.IMAGE_FAILED,
        says=("denies access (forbidden)",),
        pod=with_image("image-forbidden", lambda world: f"{local_server(world, 403)}/app:1"),
    ),
    Trouble(
        name="image-bad-name",
        made="the image's name is no name of an image",
        rule=Rule.IMAGE_FAILED,
        says=("that is no valid name of an image",),
        pod=with_image("image-bad-name", "Not A Name"),
        quick=True,
    ),
    Trouble(
        name="image-never",
        made="imagePullPolicy Never, and the image is not there",
        rule=Rule.IMAGE_FAILED,
        says=("is not on the node, and imagePullPolicy Never forbids to pull it",),
        pod=with_image("image-never", "127.0.0.1:1/other:1", imagePullPolicy="Never"),
        quick=True,
    ),
)


def prepare(world: World) -> None:
    """Fills the registry."""
    world.registry.add("team/app", "1", marker="app")
    world.registry.add("secret/app", "1", marker="secret")
    world.registry.protect("secret/", ann="hunter2")
    world.registry.add("team/other", "1", marker="other")
    world.registry.add_index("team/other", "1", architecture="s390x")


def tls_registry(world: World) -> str:
    """A server with a certificate of a CA that no one trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    address = loopback_address()
    files = [str(world.folder / name) for name in ("tls.crt", "tls.key")]
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=registry"]
    subprocess.run(
        [*words, "-addext", f"subjectAltName=IP:{address}", "-out", files[0], "-keyout", files[1]],
        check=True,
        capture_output=True,
    )
    context.load_cert_chain(*files)
    return _server(200, address, context)


def plain_registry(_: World) -> str:
    """A server without TLS at an address that is not loopback."""
    return _server(200, loopback_address())


def local_server(_: World, status: int) -> str:
    """A server that answers every request so."""
    return _server(status, "127.0.0.1")


def _server(status: int, address: str, context: ssl.SSLContext | None = None) -> str:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer((address, 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"{address}:{server.server_port}"


@pytest.fixture(scope="module")
def world(containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with standalone_world(containerd, tmp_path_factory.mktemp("i")) as made:
        prepare(made)
        made.put(*chosen(TROUBLES))
        yield made


@each_chosen(TROUBLES)
def test_a_pod_without_its_image_gets_the_cause(world: World, trouble: Trouble) -> None:
    world.shows(trouble)
