"""A registry of container images on loopback, over HTTP, with passwords: enough of the distribution protocol to pull.

    with Registry(tmp_path) as registry:
        registry.add("team/app", "1", marker="first")
        registry.name("team/app", "1")              # 127.0.0.1:40123/team/app:1
        registry.protect("team/", ann="hunter2")    # repositories that begin so need one of these
        registry.pulls("team/app")                  # who fetched its manifest, by user name ("" for anonymous)
        registry.hold(after=3 << 20)                # big blobs stop after so many bytes, until registry.let_go()

Images are busybox with a file `/marker`, so that a container can tell which one it is made of.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import secrets
import tarfile
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from pathlib import Path
from types import TracebackType

import pytest

from tests.fakes.containerd import NEWER, images_script
from tests.skips import on_purpose

_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Registry:
    """One registry; requests are served in threads."""

    def __init__(self, folder: Path) -> None:
        if NEWER:
            pytest.skip(on_purpose("containerd 2.x asks for TLS even on loopback"))
        self._folder = folder
        self._blobs: dict[str, bytes] = {}
        self._indexes: set[str] = set()
        self._tags: dict[tuple[str, str], str] = {}
        self._passwords: dict[str, dict[str, str]] = {}
        self._fetched: list[tuple[str, str]] = []
        self._own = secrets.token_bytes(8)
        self._free = threading.Event()
        self._free.set()
        self._held_after = 0
        self._rate = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, name="registry", daemon=True)

    @property
    def host(self) -> str:
        """Address and port, as image names begin."""
        return f"127.0.0.1:{self._server.server_port}"

    def name(self, repository: str, tag: str) -> str:
        """The image's full name."""
        return f"{self.host}/{repository}:{tag}"

    def add(self, repository: str, tag: str, *, marker: str, filler: int = 0) -> str:
        """An image with so many bytes of filler, which replaces another of that tag; gives the digest of its manifest.
        No two registries have the same: a runtime does not fetch again what it got from another."""
        script = images_script()
        archive = self._folder / "pushed.tar"
        files = {"marker": marker.encode(), "registry": self._own, "filler": secrets.token_bytes(filler)}
        script.write_archive(archive, [script.BuiltImage(names=(self.name(repository, tag),), files=files)])
        with tarfile.open(archive) as packed:
            files = {member.name: reader.read() for member in packed if (reader := packed.extractfile(member))}
        self._blobs |= {f"sha256:{Path(name).name}": data for name, data in files.items() if name.startswith("blobs/")}
        digest: str = json.loads(files["index.json"])["manifests"][0]["digest"]
        self._tags[repository, tag] = digest
        return digest

    def add_index(self, repository: str, tag: str, *, architecture: str) -> None:
        """From now on the tag is an index with that image for this architecture alone."""
        digest = self._tags[repository, tag]
        image = {"mediaType": _MANIFEST, "digest": digest, "size": len(self._blobs[digest])}
        entry = {**image, "platform": {"architecture": architecture, "os": "linux"}}
        index = json.dumps({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [entry]}).encode()
        made = f"sha256:{hashlib.sha256(index).hexdigest()}"
        self._blobs[made], self._tags[repository, tag] = index, made
        self._indexes.add(made)

    def protect(self, prefix: str, **passwords: str) -> None:
        """Repositories that begin so are only for these users."""
        self._passwords[prefix] = passwords

    def hold(self, *, after: int) -> None:
        """From now on bodies stop after so many bytes."""
        self._held_after = after
        self._free.clear()

    def let_go(self) -> None:
        """What was held goes on."""
        self._free.set()

    def slow_down(self, bytes_per_second: int) -> None:
        """From now on bodies come at this rate; 0: as fast as they can."""
        self._rate = bytes_per_second

    def pulls(self, repository: str) -> list[str]:
        """Users that were given the manifest, in order."""
        return [user for name, user in self._fetched if name == repository]

    def __enter__(self) -> Registry:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.let_go()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # -- answering ---------------------------------------------------------------------------------------------------

    def _handler(registry) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the request's
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(with_body=True)

            def do_HEAD(self) -> None:
                self._answer(with_body=False)

            def log_message(self, *_: object) -> None:
                return

            def _answer(self, *, with_body: bool) -> None:
                status, headers, body = registry._look_up(self.path, self.headers.get("Authorization", ""), with_body)
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if with_body:
                    registry._send(self.wfile, body)

        return Handler

    def _send(self, wire: BufferedIOBase, body: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            while self._rate and body:
                wire.write(body[: self._rate // 5])
                wire.flush()
                body = body[self._rate // 5 :]
                time.sleep(0.2)
            if self._free.is_set() or len(body) <= self._held_after:
                wire.write(body)
                return
            wire.write(body[: self._held_after])
            wire.flush()
            self._free.wait()
            wire.write(body[self._held_after :])

    def _look_up(self, path: str, authorization: str, with_body: bool) -> tuple[HTTPStatus, dict[str, str], bytes]:
        parts = path.partition("?")[0].removeprefix("/v2/").split("/")
        if len(parts) < 3:
            return HTTPStatus.OK, {}, b"{}"
        repository, kind, reference = "/".join(parts[:-2]), parts[-2], parts[-1]
        user = self._user(repository, authorization)
        if user is None:
            refusal = {"WWW-Authenticate": 'Basic realm="registry of tests"', "Content-Type": "application/json"}
            return HTTPStatus.UNAUTHORIZED, refusal, b'{"errors":[{"code":"UNAUTHORIZED"}]}'
        digest = self._tags.get((repository, reference), reference)
        if digest not in self._blobs:
            return (
                HTTPStatus.NOT_FOUND,
                {"Content-Type": "application/json"},
                b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}',
            )
        if kind == "manifests":
            if with_body:
                self._fetched.append((repository, user))
            media_type = _INDEX if digest in self._indexes else _MANIFEST
            return HTTPStatus.OK, {"Content-Type": media_type, "Docker-Content-Digest": digest}, self._blobs[digest]
        return HTTPStatus.OK, {"Content-Type": "application/octet-stream"}, self._blobs[digest]

    def _user(self, repository: str, authorization: str) -> str | None:
        """Who asks; None if they may not."""
        user, _, password = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        for prefix, passwords in self._passwords.items():
            if repository.startswith(prefix) and (not user or passwords.get(user) != password):
                return None
        return user
