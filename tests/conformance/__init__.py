"""The upstream node suite against the agent of this checkout: `scripts/conformance` (see docs/conformance.md)."""
