"""Verdicts about images: pulled now, cannot be pulled, must not be pulled."""

from __future__ import annotations

from glasslet.answers.states import Rule, VerdictState
from glasslet.answers.why import VerdictAnswer
from glasslet.answers.words import times
from glasslet.glass.pulls import first_words, is_stalled, layer_words, pull_words
from glasslet.glass.trace.timeline import moment
from glasslet.glass.verdicts.causes import Cause, image_cause
from glasslet.glass.verdicts.situation import Situation
from glasslet.record.stations import Station, WaitKind
from glasslet.runtime.images.progress_watch import PullView

_NEXT = {
    "ErrImageNeverPull": "import the image into the runtime, or change imagePullPolicy from Never",
    "InvalidImageName": "correct the image name",
    "RegistryUnavailable": "wait for the registry, or check the connection to it; the agent tries again",
    "SignatureValidationFailed": "use an image with the signature that this node requires",
}
_WORDS = {
    "ErrImageNeverPull": "it is not on the node, and imagePullPolicy Never forbids to pull it",
    "InvalidImageName": "that is no valid name of an image",
}
_FAILED = {"ErrImagePull", "ImagePullBackOff", "ImageInspectError", *_NEXT}


def image_failed(it: Situation) -> VerdictAnswer | None:
    """An image is missing and the pull failed."""
    for status, _ in it.statuses():
        waiting = status.state.waiting
        if waiting is None or waiting.reason not in _FAILED:
            continue
        container = it.container(status.name)
        image = container.image if container is not None else status.image
        back_off = it.wait(WaitKind.BACK_OFF, container=status.name) or it.wait(WaitKind.BACK_OFF)
        again = it.until(back_off)
        failures = [span for span in it.failures(Station.IMAGE) if span.container == status.name]
        chain = waiting.message
        cause = image_cause(chain) or (image_cause(failures[-1].detail) if failures else None)
        since = it.failing_since(Station.IMAGE, container=status.name)
        if cause is None and waiting.reason in _WORDS:
            cause = Cause(_WORDS[waiting.reason].format(image=image), _NEXT[waiting.reason])
        short = cause.words if cause is not None else waiting.reason
        return it.verdict(
            Rule.IMAGE_FAILED,
            VerdictState.FAILING,
            f"{it} cannot get image {image} of container {status.name}"
            + (f": {cause.words}" if cause is not None else "")
            + f" ({waiting.reason})"
            + (f"; next try in {again}." if again else "."),
            brief=f"image {image}: {short}" + (f", next try in {again}" if again else ""),
            since=since or (moment(back_off.since) if back_off is not None else None),
            evidence=[
                ("said", chain),
                ("last error", failures[-1].detail if failures and failures[-1].detail not in chain else ""),
                ("tried", times(len(failures)) if failures else ""),
                ("policy", container.image_pull_policy if container is not None else ""),
            ],
            next_step=(cause.next_step if cause is not None else "")
            or _NEXT.get(waiting.reason, "check the image's name and tag, and the pull secret; the agent tries again"),
        )
    return None


def _pull_step(it: Situation, pull: PullView | None) -> str:
    if pull is not None and pull.queued_behind is not None:
        return "wait, or let pulls run side by side (serializeImagePulls: false, maxParallelImagePulls)"
    if pull is not None and is_stalled(pull):
        return f"check the registry and this node's connection to it; to begin anew, delete the pod ({it})"
    return "wait; if it is slow, a mirror or a smaller image helps"


def image_pulling(it: Situation) -> VerdictAnswer | None:
    """An image is being pulled, or its pull is queued."""
    for standing in it.record.stations:
        if standing.station != Station.IMAGE:
            continue
        container = it.container(standing.container)
        image = container.image if container is not None else standing.detail
        queued = it.wait(WaitKind.QUEUE, container=standing.container)
        credentials = it.wait(WaitKind.CREDENTIALS, container=standing.container)
        pull = it.pulls.get(standing.container)
        known = pull_words(pull) if pull is not None else ""
        doing = f"waits in the {queued.on}" if queued is not None else "is being pulled"
        doing += f": {known}" if known else ""
        first = first_words(pull) if pull is not None else ""
        doing += f", of which {first} has run longest" if first else ""
        brief = known or (queued.on if queued is not None else "pulling")
        if credentials is not None:
            doing, brief = f"waits for {credentials.on}", credentials.on
        return it.verdict(
            Rule.IMAGE_PULLING,
            VerdictState.STARTING,
            f"{it} waits for image {image} of container {standing.container}, which {doing} "
            f"({it.ago(standing.since)}).",
            brief=f"image {image}: {brief}",
            since=moment(standing.since),
            evidence=[
                ("image", image),
                ("queue", queued.on if queued is not None else ""),
                ("bytes", known),
                ("layers", layer_words(pull) if pull is not None else ""),
            ],
            next_step=_pull_step(it, pull),
        )
    return None
