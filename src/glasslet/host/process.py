"""The agent's own process."""

from __future__ import annotations

import logging

logger = logging.getLogger(__name__)


def set_own_oom_score(score: int) -> None:
    """Tells the kernel how ready it may be to kill this process (-1000 never, 1000 first). Lowering needs
    CAP_SYS_RESOURCE; without it the agent goes on as it is."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(str(score))
    except OSError as error:
        logger.warning("oom_score_adj not set", extra={"score": score, "error": error.strerror})
