"""The work on pods: one task per pod that observes, plans, acts and records.

lifecycle   where a pod is in its life (pure)         planner/   what to do next (pure)
updates     merge of updates and kills (pure)         backoff    restart back-off (pure)
worker      one pod's task                            workers    all of them; the only entry for others
executor    runs the planner's actions                upkeep/    orphans, folders, volumes
"""
