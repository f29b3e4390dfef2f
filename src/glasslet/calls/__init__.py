"""Calls: the agent's own functions as they ran for one pod, and during the agent's start."""
