"""Graceful shutdown of the node: logind waits while pods end by priority."""
