"""Telemetry: logging and metrics of the agent. No behaviour depends on it."""
