"""Fuzzing of every decoder of outside bytes: `scripts/fuzz` for hours, `test_fuzz.py` for seconds.

A decoder may return a value or raise its module's own error, within bounds of time and memory; nothing else.
"""
