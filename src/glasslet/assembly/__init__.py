"""Builds the parts of the agent from the configuration, one part per file; `daemon.py` runs them. No behaviour."""
