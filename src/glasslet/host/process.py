"""The agent's own process."""

from __future__ import annotations

import logging
import resource
from collections.abc import Sequence

logger = logging.getLogger(__name__)


NAME = "kubelet"


def set_own_title(arguments: Sequence[str]) -> None:
    """Names this process `kubelet`, with its flags, for tools that look for it (`pidof kubelet`, `ps`): a script's
    process is named after its interpreter."""
    from setproctitle import setproctitle, setthreadtitle

    setproctitle(" ".join((NAME, *arguments)))
    # /proc/PID/comm has 15 characters; without this it holds the first ones of the title.
    setthreadtitle(NAME)


def set_own_oom_score(score: int) -> None:
    """Sets the OOM score of this process (-1000 never killed, 1000 first). Lowering needs
    CAP_SYS_RESOURCE; without it the agent goes on as it is."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(str(score))
    except OSError as error:
        logger.warning("oom_score_adj not set", extra={"score": score, "error": error.strerror})


def set_open_files(most: int) -> None:
    """How many files this process may have open (`maxOpenFiles`). Above the hard limit that needs CAP_SYS_RESOURCE;
    without it the agent takes what the hard limit allows. 0 leaves it as it is: none at all would be no agent."""
    if most == 0:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        logger.info("maxOpenFiles is above the hard limit", extra={"wanted": most, "limit": allowed})
