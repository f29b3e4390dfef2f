"""The progress of one pull in bytes: done, total, rate and stalls, of the whole and of each layer. Pure.

    state = advanced(None, sampled(at=10.0, layers=layers, present=frozenset(), ingests=ingests))
    progress = progress_of(state, now=12.0)

A layer is open while the runtime downloads it (an ingest of its content store), done once its content is there, and
waiting before. The runtime writes a layer in steps of 1 MiB, so a slow download stands still for seconds between them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct

from glasslet.answers.words import duration, size_words

WINDOW: Final = 12.0
"""Seconds that a rate is the mean of."""
MAX_LAYERS: Final = 500
"""Layers of an image; an overlay file system has no more."""
STALLED_AFTER: Final = 30.0
"""Seconds without a byte. Three steps of 1 MiB at 100 kB/s fit in."""


class Layer(Struct, frozen=True):
    """One layer of an image. `size` as its manifest has it, 0 if unknown."""

    digest: str
    size: int = 0


class Ingest(Struct, frozen=True):
    """A layer that the runtime downloads now. `total` 0: unknown."""

    digest: str
    done: int = 0
    total: int = 0


class LayerBytes(Struct, frozen=True):
    """One layer at one moment."""

    digest: str
    done: int
    total: int
    open: bool = False


class Sample(Struct, frozen=True):
    """All layers at one moment, `at` in the clock's seconds."""

    at: float
    layers: tuple[LayerBytes, ...] = ()

    @property
    def done(self) -> int:
        """Bytes that are there."""
        return sum(layer.done for layer in self.layers)


class PullState(Struct, frozen=True):
    """The samples of the last `WINDOW` seconds, and when the last byte came."""

    samples: tuple[Sample, ...]
    moved_at: float


class LayerRate(Struct, frozen=True, kw_only=True):
    """One layer: bytes, and bytes per second."""

    digest: str
    done: int
    total: int
    rate: float = 0.0
    open: bool = False


class PullRate(Struct, frozen=True, kw_only=True):
    """One pull. `total` 0: no layer is known yet. `stalled`: seconds since the last byte, None if bytes come or none is
    due."""

    done: int = 0
    total: int = 0
    rate: float = 0.0
    stalled: float | None = None
    layers: tuple[LayerRate, ...] = ()

    @property
    def downloaded(self) -> bool:
        """All bytes are there: what remains is to unpack them."""
        return 0 < self.total <= self.done


def sampled(*, at: float, layers: Iterable[Layer], present: Collection[str], ingests: Iterable[Ingest]) -> Sample:
    """The layers at this moment. `present`: digests of layers whose content is there."""
    arriving = {ingest.digest: ingest for ingest in ingests}
    return Sample(at, tuple(_layer_bytes(layer, present, arriving.get(layer.digest)) for layer in layers))


def _layer_bytes(layer: Layer, present: Collection[str], ingest: Ingest | None) -> LayerBytes:
    if layer.digest in present:
        return LayerBytes(layer.digest, layer.size, layer.size)
    if ingest is None:
        return LayerBytes(layer.digest, 0, layer.size)
    return LayerBytes(layer.digest, ingest.done, max(layer.size, ingest.total, ingest.done), open=True)


def advanced(before: PullState | None, sample: Sample) -> PullState:
    """The state with one sample more. Bytes count as arrived if any layer has more than before."""
    if before is None or not before.samples:
        return PullState((sample,), sample.at)
    last = {layer.digest: layer.done for layer in before.samples[-1].layers}
    moved = any(layer.done > last.get(layer.digest, 0) for layer in sample.layers)
    opened = _any_open(sample) and not _any_open(before.samples[-1])
    kept = tuple(one for one in before.samples if one.at > sample.at - WINDOW)
    return PullState((*kept, sample), sample.at if moved or opened else before.moved_at)


def progress_of(state: PullState, *, now: float) -> PullRate:
    """The progress at `now`. A pull stalls only while a download is open: others unpack or wait for their turn."""
    first, last = state.samples[0], state.samples[-1]
    idle = now - state.moved_at
    before = {layer.digest: layer.done for layer in first.layers}
    seconds = max(last.at - first.at, now - first.at)
    layers = tuple(
        LayerRate(
            digest=layer.digest,
            done=layer.done,
            total=layer.total,
            rate=_rate(layer.done - before.get(layer.digest, 0), seconds),
            open=layer.open,
        )
        for layer in last.layers
    )
    return PullRate(
        done=last.done,
        total=sum(layer.total for layer in layers),
        rate=_rate(last.done - first.done, seconds),
        stalled=idle if idle >= STALLED_AFTER and _any_open(last) else None,
        layers=layers,
    )


def _any_open(sample: Sample) -> bool:
    return any(layer.open for layer in sample.layers)


def _rate(grown: int, seconds: float) -> float:
    return max(0, grown) / seconds if seconds > 0 else 0.0


def progress_words(progress: PullRate) -> str:
    """`12 MiB of 80 MiB, 3.1 MiB/s`; "" while nothing is known."""
    if progress.downloaded:
        return f"{size_words(progress.done)} downloaded, being unpacked"
    if not progress.total:
        return ""
    bytes_ = f"{size_words(progress.done)} of {size_words(progress.total)}"
    if progress.stalled is not None:
        return f"{bytes_}, stalled for {duration(progress.stalled)}"
    return f"{bytes_}, {size_words(progress.rate)}/s" if progress.rate else bytes_


def layer_of_ref(ref: str) -> str:
    """The digest of the layer that an ingest of this name downloads (`layer-sha256:...`); "" for anything else."""
    kind, _, digest = ref.partition("-")
    return digest if kind == "layer" and ":" in digest else ""


def owned_ingests(layers: Sequence[Layer], ingests: Iterable[Ingest]) -> tuple[Ingest, ...]:
    """Those ingests that belong to these layers."""
    digests = {layer.digest for layer in layers}
    return tuple(ingest for ingest in ingests if ingest.digest in digests)
