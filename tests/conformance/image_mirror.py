"""A registry on loopback that has the images which were imported: for tests that pull what is there already.

Its blobs are those of containerd's own content store; a second containerd namespace keeps them from being collected
when a test removes an image.
"""

from __future__ import annotations

import threading
import urllib.parse
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_OCTETS = "application/octet-stream"


class ImageMirror:
    """`images`: full name -> (media type, digest of the manifest). A context: it serves inside."""

    def __init__(self, blobs: Path, images: Mapping[str, tuple[str, str]]) -> None:
        self._blobs = blobs
        self._images = images
        self._types = {digest: media_type for media_type, digest in images.values()}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, name="image-mirror", daemon=True)

    @property
    def url(self) -> str:
        """For containerd's hosts.toml."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ImageMirror:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self.close()
        self._thread.join()

    def close(self) -> None:
        """Gives the port back; only for one that does not serve."""
        self._server.server_close()

    def look_up(self, target: str) -> tuple[str, str, Path] | None:
        """(media type, digest, file) of what a request path names; None when it is not there. The registry that is
        mirrored is the query's `ns`."""
        url = urllib.parse.urlsplit(target)
        registry = urllib.parse.parse_qs(url.query).get("ns", [""])[0]
        parts = url.path.removeprefix("/v2/").split("/")
        if len(parts) < 3:
            return None
        repository, reference = "/".join(parts[:-2]), parts[-1]
        media_type, digest = self._images.get(f"{registry}/{repository}:{reference}", (_OCTETS, reference))
        kind, _, name = digest.partition(":")
        path = self._blobs / kind / name
        if kind != "sha256" or not name.isalnum() or not path.is_file():
            return None
        return self._types.get(digest, media_type), digest, path


def _handler(mirror: ImageMirror) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def log_message(self, *_: object) -> None:
            return

        def _answer(self, *, with_body: bool) -> None:
            found = mirror.look_up(self.path)
            asked_for_version = self.path.rstrip("/") == "/v2"
            body = b"" if found is None else found[2].read_bytes()
            self.send_response(HTTPStatus.OK if found or asked_for_version else HTTPStatus.NOT_FOUND)
            if found is not None:
                self.send_header("Content-Type", found[0])
                self.send_header("Docker-Content-Digest", found[1])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    return Handler
