"""The pictures of docs/: made here, and compared loosely with those that are kept.

GLASSLET_PICTURES=1 pytest tests/browser/test_pictures.py       writes them into docs/pictures
"""

from __future__ import annotations

import base64
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import OpenPage, show
from tests.browser.world import FAILING, World

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
MOST_BYTES = 100_000
MOST_DIFFERENT = 0.15
"""Of all points. Times, fonts of another version and the order of pods change some."""
WIDE = {"width": 1200, "height": 760}
BREAK = {
    "number": 1,
    "at": "sandbox",
    "after": False,
    "pod": "shop/web-*",
    "holdSeconds": 600,
    "hits": 1,
    "matching": 2,
    "holding": ["shop/web-7f6c9d8b4-x2lqp"],
    "setAt": "2026-11-22T10:01:40Z",
    "setBy": "root",
    "problem": "",
}
HELD = "pod/shop/web-7f6c9d8b4-x2lqp"
PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "page-pods": ("pods", {"viewport": WIDE, "color_scheme": "dark"}),
    "page-failing": (f"pod/{FAILING}", {"viewport": WIDE}),
    "page-held": (HELD, {"viewport": WIDE, "color_scheme": "dark"}),
    "page-node": ("node", {"viewport": WIDE}),
    "page-stations": ("stations", {"viewport": WIDE}),
    "page-phone": (f"pod/{FAILING}", {"viewport": {"width": 360, "height": 740}}),
}
DIFFERENCE = """async ([one, other]) => {
  const points = async (data) => {
    const image = new Image();
    image.src = 'data:image/png;base64,' + data;
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    return [image.width, image.height, context.getImageData(0, 0, image.width, image.height).data];
  };
  const [w, h, a] = await points(one);
  const [v, g, b] = await points(other);
  if (w !== v || h !== g) return 1;
  let different = 0;
  for (let i = 0; i < a.length; i += 4)
    if (Math.abs(a[i] - b[i]) + Math.abs(a[i + 1] - b[i + 1]) + Math.abs(a[i + 2] - b[i + 2]) > 60) different++;
  return different / (w * h);
}"""


PALETTE = """async (data) => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + data;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const points = context.getImageData(0, 0, image.width, image.height).data;
  const counts = new Map();
  for (let i = 0; i < points.length; i += 4) {
    const colour = (points[i] << 16) | (points[i + 1] << 8) | points[i + 2];
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const kept = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 128).map(([colour]) => colour);
  const parts = (c) => [c >> 16, (c >> 8) & 255, c & 255];
  const nearest = new Map(kept.map((colour, i) => [colour, i]));
  for (const colour of counts.keys()) {
    if (nearest.has(colour)) continue;
    const [r, g, b] = parts(colour);
    let [best, at] = [Infinity, 0];
    kept.forEach((other, i) => {
      const [x, y, z] = parts(other);
      const far = (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2;
      if (far < best) [best, at] = [far, i];
    });
    nearest.set(colour, at);
  }
  let text = '';
  for (let i = 0; i < points.length; i += 4)
    text += String.fromCharCode(nearest.get((points[i] << 16) | (points[i + 1] << 8) | points[i + 2]));
  return [image.width, image.height, kept.flatMap(parts), btoa(text)];
}"""


def with_palette(page: Any, picture: bytes) -> bytes:
    """The picture as a PNG with 128 colours, a third of the size."""
    width, height, colours, points = page.evaluate(PALETTE, base64.b64encode(picture).decode())
    data = base64.b64decode(points)
    rows = b"".join(b"\0" + data[at : at + width] for at in range(0, width * height, width))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", bytes(colours)), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, body) for kind, body in parts)


@pytest.mark.parametrize("name", PICTURES)
def test_a_view_looks_like_its_picture(world: World, open_page: OpenPage, name: str) -> None:
    view, options = PICTURES[name]
    page = open_page(world, **options)
    # This agent has no stops of its own; its pod is held all the same.
    page.route("**/v1/rights", lambda route: route.fulfill(json={"verbs": ["get", "create"]}))
    page.route("**/v1/breaks", lambda route: route.fulfill(json={"breaks": [BREAK]}))
    show(page, view)
    page.wait_for_timeout(1200)
    page.mouse.move(0, 0)
    made = with_palette(page, page.screenshot())
    assert len(made) < MOST_BYTES, len(made)
    kept = FOLDER / f"{name}.png"
    if os.environ.get("GLASSLET_PICTURES"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(made)
    pictures = [base64.b64encode(data).decode() for data in (made, kept.read_bytes())]
    assert page.evaluate(DIFFERENCE, pictures) < MOST_DIFFERENT
