"""Breaks and holds over HTTP."""
