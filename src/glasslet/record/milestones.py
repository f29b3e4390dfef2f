"""The names under which the milestones of a pod's start are observed.

created at the API ─▶ seen ─▶ … ─▶ Ready, as the agent sees it ─▶ Ready accepted by the API server
"""

CREATED = "created at API"
"""Observed when the pod is seen: `new` is the API object's creationTimestamp, in whole seconds."""
READY = "condition Ready"
"""Observed when the status that the agent reports changes: `new` is True or False."""
READY_ACCEPTED = "condition Ready accepted at API"
"""Observed when the API server has answered the patch that carried it."""
