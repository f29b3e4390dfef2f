"""The way of pods from the sources to the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.podspec.gated_fields import effective_pod


class PodIntake:
    """Takes merged updates of the sources. `tidy` has orphans stopped, `update` takes an update to the pod's worker;
    `enabled`: whether a feature gate is on."""

    def __init__(
        self, *, tidy: Callable[[], None], update: Callable[[PodUpdate], None], enabled: Callable[[str], bool]
    ) -> None:
        self._tidy = tidy
        self._update = update
        self._enabled = enabled

    def deliver(self, updates: Sequence[PodUpdate]) -> None:
        """Takes the updates to the workers, in their order and without the fields whose gate is off. None: a source
        has reported for the first time."""
        # What an earlier agent left goes first: a new static pod waits for the end of the old one of its name.
        if not updates or any(update.kind is UpdateKind.ADD for update in updates):
            self._tidy()
        for update in updates:
            effective = effective_pod(update.pod, self._enabled)
            self._update(update if effective is update.pod else replace(update, pod=effective))
