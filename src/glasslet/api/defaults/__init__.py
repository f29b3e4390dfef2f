"""What the API server would have filled in: the v1 defaults of a pod, for pods that never met an API server.

Pure: takes a frozen pod, returns a frozen pod; whatever needs no default is shared, not copied.
Start at `glasslet.api.defaults.pod`.
"""
