"""Container logs: reading them for people, rotating them before they fill the disk.

    async for piece in read_logs(path, LogOptions(tail=10, follow=True), running=lambda: ...): ...
    found = choose_log(pod_name, status, container, previous=False)      # ContainerID | NoLog
    rotator = LogRotator(runtime=..., pods=observed.all, recorder=..., clock=..., policy=RotationPolicy())

`lines.py`, `choice.py`, `rotation.py` are pure.
"""

from __future__ import annotations

from glasslet.runtime.logs.choice import NoLog, choose_log
from glasslet.runtime.logs.lines import UnknownLogFormat
from glasslet.runtime.logs.options import LogOptions, LogStream
from glasslet.runtime.logs.reader import read_logs
from glasslet.runtime.logs.rotation import RotationPolicy
from glasslet.runtime.logs.rotator import LogRotator

__all__ = [
    "LogOptions",
    "LogRotator",
    "LogStream",
    "NoLog",
    "RotationPolicy",
    "UnknownLogFormat",
    "choose_log",
    "read_logs",
]
