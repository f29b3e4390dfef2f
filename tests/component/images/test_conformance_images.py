"""How the conformance node comes to its images: a proxy across network namespaces, or a mirror on loopback."""

from __future__ import annotations

import asyncio
import hashlib
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance import proxy
from tests.conformance.image_mirror import ImageMirror

INDEX = "application/vnd.oci.image.index.v1+json"


@pytest.fixture
async def way_out(tmp_path: Path) -> AsyncIterator[tuple[str, int]]:
    """Address of the inner half of a proxy."""
    outer = await proxy.serve(tmp_path / "p.sock")
    inner, url = await proxy.listen(tmp_path / "p.sock")
    host, _, port = url.removeprefix("http://").partition(":")
    yield host, int(port)
    for server in (inner, outer):
        server.close()
        await server.wait_closed()
    mine = asyncio.current_task()
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not mine))  # those of the connections


async def _ask(way_out: tuple[str, int], request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    reader, writer = await asyncio.open_connection(*way_out)
    writer.write(request)
    return reader, writer, await reader.readuntil(b"\r\n\r\n")


async def test_bytes_go_both_ways_through_the_proxy(way_out: tuple[str, int]) -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    far = await asyncio.start_server(shout, "127.0.0.1", 0)
    port = far.sockets[0].getsockname()[1]
    reader, writer, head = await _ask(way_out, b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: far\r\n\r\n" % port)
    writer.write(b"hello")
    writer.write_eof()
    assert (head.split(b"\r\n")[0], await reader.read()) == (b"HTTP/1.1 200 Connection Established", b"HELLO")
    writer.close()
    await writer.wait_closed()
    far.close()
    await far.wait_closed()


async def test_a_machine_that_is_not_there_is_a_bad_gateway(way_out: tuple[str, int]) -> None:
    _, writer, head = await _ask(way_out, b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 502 ")
    writer.close()
    await writer.wait_closed()


async def test_only_tunnels_are_made(way_out: tuple[str, int]) -> None:
    _, writer, head = await _ask(way_out, b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 405 ")
    writer.close()
    await writer.wait_closed()


def test_an_image_is_found_by_the_registry_that_is_mirrored(tmp_path: Path) -> None:
    digest = _store(tmp_path, b"{}")
    with ImageMirror(tmp_path, {"quay.test/team/app:1": (INDEX, digest)}) as mirror:
        with urllib.request.urlopen(f"{mirror.url}/v2/team/app/manifests/1?ns=quay.test") as answer:
            assert (answer.read(), answer.headers["Content-Type"]) == (b"{}", INDEX)
            assert answer.headers["Docker-Content-Digest"] == digest
        with pytest.raises(urllib.error.HTTPError) as refusal, urllib.request.urlopen(f"{mirror.url}/v2/a/manifests/1"):
            pass
        assert refusal.value.code == 404
        refusal.value.close()


def test_blobs_are_found_by_digest(tmp_path: Path) -> None:
    digest = _store(tmp_path, b"layer")
    mirror = ImageMirror(tmp_path, {})
    found = mirror.look_up(f"/v2/team/app/blobs/{digest}?ns=quay.test")
    assert found is not None
    assert found[2].read_bytes() == b"layer"
    mirror.close()


@pytest.mark.parametrize("digest", ["sha256:..", "sha256:%2e%2e", "md5:0", "sha256:0", "latest", ""])
def test_nothing_but_blobs_is_given_out(tmp_path: Path, digest: str) -> None:
    mirror = ImageMirror(tmp_path, {})
    assert mirror.look_up(f"/v2/team/app/blobs/{digest}") is None
    mirror.close()


def _store(folder: Path, content: bytes) -> str:
    name = hashlib.sha256(content).hexdigest()
    (folder / "sha256").mkdir(exist_ok=True)
    (folder / "sha256" / name).write_bytes(content)
    return f"sha256:{name}"
