"""Problems of a volume's sources, and several problems as one."""

from __future__ import annotations

from collections.abc import Sequence

from glasslet.kubeapi.errors import APIError, Throttled, Unauthorized, Unavailable
from glasslet.volumes.plugin import VolumeProblem

MOST_SHOWN = 50
"""Problems of one volume that its text names; a volume may have thousands of sources."""


class SourceUnreachable(VolumeProblem):
    """The API server does not answer. A volume that holds files keeps them."""


def source_problem(error: APIError) -> VolumeProblem:
    """The problem of a volume whose request failed."""
    return SourceUnreachable(error.message) if is_unreachable(error) else VolumeProblem(error.message)


def is_unreachable(error: APIError) -> bool:
    """Whether the API server gave no answer, not even a refusal."""
    return isinstance(error, Unavailable | Throttled | Unauthorized)


def joined(problems: Sequence[VolumeProblem]) -> VolumeProblem:
    """One problem as it is, several in brackets, each of them once: the form that tools know from upstream."""
    distinct = list(dict.fromkeys(str(problem) for problem in problems))
    if len(distinct) > MOST_SHOWN:
        distinct[MOST_SHOWN:] = [f"and {len(distinct) - MOST_SHOWN} more"]
    text = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
    unreachable = all(isinstance(problem, SourceUnreachable) for problem in problems)
    return SourceUnreachable(text) if unreachable else VolumeProblem(text)
