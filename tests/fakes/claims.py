"""Claims where there is no API server."""

from __future__ import annotations

from glasslet.volumes.claims import Claims

NO_CLAIMS = Claims(client=None, node="node", labels=dict)
