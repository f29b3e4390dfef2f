"""Defaults that the API server fills in (core/v1), for pods that do not come from one.

Pure: takes a frozen pod, returns a frozen pod; whatever needs no default is shared, not copied.
Start at `glasslet.api.defaults.pod`.
"""
