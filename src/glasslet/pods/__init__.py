"""Per-pod work: one task per pod that observes, plans, acts and records.

lifecycle   where a pod is in its life (pure)         planner/   what to do next (pure)
updates     merge of what is asked of a pod (pure)    backoff    restart back-off (pure)
worker      one pod's task                            workers    all of them; the only entry for others
executor    runs the planner's actions                housekeeping  pods that nobody wants
"""
