"""Claims where there is no API server."""

from __future__ import annotations

from glasslet.host.files.layout import RootLayout
from glasslet.volumes.claim_notes import ClaimNotes
from glasslet.volumes.claims import Claims
from tests.fakes.inline_threads import InlineThreads

NO_CLAIMS = Claims(
    client=None, notes=ClaimNotes(root=RootLayout("/nowhere"), threads=InlineThreads()), node="node", labels=dict
)
