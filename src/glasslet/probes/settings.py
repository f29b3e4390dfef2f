"""Settings of probes beyond upstream's configuration, from the environment of the agent's process."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

EXEC_AT_ONCE = "GLASSLET_EXEC_PROBES_AT_ONCE"
REPEAT_LATE = "GLASSLET_REPEAT_LATE_PROBES"
_WORDS = {"true": True, "false": False}


class ProbeSettings(Struct, frozen=True, kw_only=True):
    """`exec_at_once`: how many commands may run at the same time, 0 for no limit. `repeat_late`: a probe that ran out
    of time while the agent itself stood still is run again before it counts. `exec_timeout`: a command that runs out of
    time fails (gate ExecProbeTimeout); without, it is an error and does not count. `kept`: single results per probe."""

    exec_at_once: int = 0
    repeat_late: bool = True
    exec_timeout: bool = True
    kept: int = 10


def probe_settings(environment: Mapping[str, str], *, exec_timeout: bool = True) -> ProbeSettings:
    """The settings. Raises ValueError naming the variable, its value and what is allowed."""
    at_once = environment.get(EXEC_AT_ONCE, "0")
    if not (at_once.isascii() and at_once.isdigit()):
        raise ValueError(f"environment variable {EXEC_AT_ONCE}={at_once!r}: want a number, 0 for no limit")
    repeat = environment.get(REPEAT_LATE, "true").lower()
    if repeat not in _WORDS:
        raise ValueError(f"environment variable {REPEAT_LATE}={repeat!r}: want true or false")
    return ProbeSettings(exec_at_once=int(at_once), repeat_late=_WORDS[repeat], exec_timeout=exec_timeout)
