"""The status of a pod as its worker reports it: facts, termination messages, start time."""
