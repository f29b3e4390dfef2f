"""The work on pods: one task per pod that observes, plans, acts and records.

lifecycle   the states of a pod's life (pure)          planner/   the next actions (pure)
updates     merge of updates and kills (pure)         backoff    restart back-off (pure)
worker      one pod's task                            workers    all of them; the only entry for others
executor    runs the planner's actions                upkeep/    orphans, folders, volumes
"""
