"""The request and answer of `debugger`.

POST /glass/v1/debugger      DebuggerRequest -> DebuggerAnswer, when a debugger can attach; on the socket only
"""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.wire import WireMessage


class DebuggerRequest(WireMessage, frozen=True, kw_only=True):
    """Where debugpy is to listen (an address of loopback and a port), and for how long at most."""

    listen: str = "127.0.0.1:5678"
    seconds: float = 1800.0


class DebuggerAnswer(WireMessage, frozen=True, kw_only=True):
    """A debugger can attach at `listen` until `until`. `lease`: the node's lease that is kept meanwhile, "" without a
    cluster."""

    listen: str
    until: datetime
    lease: str = ""
    pid: int = 0
