"""The record: each pod's stations, waits, decisions and findings, in memory and on disk.

Every room may write (`recorder`, `standing`, `stations`); only `glass` reads; no behaviour depends on it. Writing never
blocks and never fails.
"""
