"""The answer to `images`: the images on a node, and what garbage collection would do with them.

GET /glass/v1/node/images    ImagesAnswer
"""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.wire import WireMessage


class ImageRow(WireMessage, frozen=True, kw_only=True):
    """One image. `used_by`: some of its `users`, as namespace/pod/container; `last_used`: None if it was never seen in
    use; `place`: when it goes, 1 first, 0 for one that stays; `stays`: why it does, "" otherwise."""

    name: str
    id: str
    size: int
    names: tuple[str, ...] = ()
    first_seen: datetime | None = None
    last_used: datetime | None = None
    used_by: tuple[str, ...] = ()
    users: int = 0
    pinned: bool = False
    place: int = 0
    stays: str = ""


class ImageDisk(WireMessage, frozen=True, kw_only=True):
    """The file system of the images, in bytes and per cent; `to_free`: what a collection would free now by itself."""

    capacity: int
    available: int
    percent: int
    begins_percent: int
    until_percent: int
    to_free: int = 0


class DeadContainerRow(WireMessage, frozen=True, kw_only=True):
    """One container that does not run. `when`: it goes at the next collection, when the disk is short, or it stays."""

    pod: str
    container: str
    id: str
    attempt: int
    when: str


class ImagesAnswer(WireMessage, frozen=True, kw_only=True):
    """All images, those that go first in front. `disk`: None if unknown; `problem`: why nothing is known."""

    images: tuple[ImageRow, ...] = ()
    disk: ImageDisk | None = None
    dead_containers: tuple[DeadContainerRow, ...] = ()
    problem: str = ""
