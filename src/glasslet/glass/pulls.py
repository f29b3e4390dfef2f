"""A pull that a container waits for, as a row and in words. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from glasslet.answers.pods import LayerProgress, PullProgress
from glasslet.runtime.images.progress import progress_words
from glasslet.runtime.images.progress_watch import PullView


def pull_row(view: PullView, now: datetime) -> PullProgress:
    """The pull in bytes."""
    progress = view.progress
    row = PullProgress(image=view.image, queued_behind=view.queued_behind or 0, unreported=view.unreported)
    if progress is None:
        return row
    return PullProgress(
        image=view.image,
        done=progress.done,
        total=progress.total,
        bytes_per_second=round(progress.rate, 1),
        stalled_since=now - timedelta(seconds=progress.stalled) if progress.stalled is not None else None,
        layers=tuple(
            LayerProgress(
                digest=layer.digest,
                done=layer.done,
                total=layer.total,
                bytes_per_second=round(layer.rate, 1),
                open=layer.open,
            )
            for layer in progress.layers
        ),
    )


def pull_words(view: PullView) -> str:
    """`12 MiB of 80 MiB, 3.1 MiB/s`, `queued behind 2 pulls`; "" while nothing is known."""
    if view.queued_behind is not None:
        return f"queued behind {view.queued_behind} pull{'s' if view.queued_behind != 1 else ''}"
    if view.unreported:
        return "the runtime does not report bytes"
    return progress_words(view.progress) if view.progress is not None else ""


def first_words(view: PullView) -> str:
    """The pull that a queued one waits for, with its bytes: `registry/app:1 (5 MiB of 12 MiB, stalled for 20 s)`; "" if
    it is not queued."""
    if view.queued_behind is None or not view.first:
        return ""
    known = progress_words(view.first_progress) if view.first_progress is not None else ""
    return f"{view.first} ({known})" if known else view.first


def is_stalled(view: PullView) -> bool:
    """Whether no byte comes for some time."""
    return view.progress is not None and view.progress.stalled is not None


def layer_words(view: PullView) -> str:
    """How many layers are there, come in and wait; "" if unknown."""
    layers = view.progress.layers if view.progress is not None else ()
    if not layers:
        return ""
    coming = sum(1 for layer in layers if layer.open)
    there = sum(1 for layer in layers if not layer.open and layer.done >= layer.total)
    waiting = len(layers) - coming - there
    words = [f"{there} of {len(layers)} there"]
    words += [f"{coming} coming in"] if coming else []
    words += [f"{waiting} not begun"] if waiting else []
    return ", ".join(words)
