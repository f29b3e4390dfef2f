"""Builds components from the configuration, a file per theme; `daemon.py` connects and runs them. No behaviour."""
