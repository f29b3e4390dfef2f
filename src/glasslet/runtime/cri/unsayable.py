"""Values that the protocol cannot carry: a number out of range, text that is no Unicode, an unknown enum name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected


@contextmanager
def refusing_unsayable(verb: Verb) -> Iterator[None]:
    """What building the request refuses is a refusal of the call, as if the runtime had said so itself."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise RuntimeRejected(verb, f"the CRI cannot carry a value: {error}", code="INVALID_ARGUMENT") from error
