"""The record: what every pod waited for, passed through, and what was decided about it.

Everybody may write here; only the server reads; no behaviour depends on it. Writing never blocks and never fails.
"""
