"""Probes: one task per container and kind, the results they give, and what survives of them when the agent ends.

manager   which probes there have to be; follows the statuses as they are computed
worker    one probe of one container: waits, probes, counts          schedule, tally   its decisions, pure
prober    one result: tries again what could not be run              http_get, grpc_health, exec_command
results   what the probes say now, and the last results with their parts
memory    the readiness that outlives the agent
"""
