"""Images: presence, pull policy, the order of pulls, and the back-off after failures.

    images = ImageManager(images=..., recorder=..., events=..., clock=..., watch=PullWatch(...),
                          policy=PullPolicy(...), metrics=...)
    outcome = await images.ensure(pod, container, sandbox=spec, auths=())      # Image | ImageProblem

An `ImageProblem` is a value: the waiting reason and message of the container, and when a retry makes sense.
`reference.py`, `back_off.py`, `progress.py` and `outcomes.py` are pure.
"""

from __future__ import annotations

from glasslet.runtime.images.manager import ImageManager, PullMetrics, PullPolicy
from glasslet.runtime.images.outcomes import ImageProblem
from glasslet.runtime.images.progress_watch import PullEvents, PullView, PullWatch
from glasslet.runtime.images.reference import ImageName, InvalidImageName, default_pull_policy, parse_image_name

__all__ = [
    "ImageManager",
    "ImageName",
    "ImageProblem",
    "InvalidImageName",
    "PullEvents",
    "PullMetrics",
    "PullPolicy",
    "PullView",
    "PullWatch",
    "default_pull_policy",
    "parse_image_name",
]
