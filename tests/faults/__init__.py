"""What must hold whatever dies, hangs or lies around the agent: one test per row of a table that is printed at the end.

Rows run in a short form with all other tests; `scripts/test-faults` runs them long (`GLASSLET_FAULTS=long`).
"""
