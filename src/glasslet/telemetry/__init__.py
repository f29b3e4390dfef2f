"""Telemetry: how the agent speaks (logging) and counts (metrics). No behaviour depends on it."""
