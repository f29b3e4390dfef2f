"""The verbs of a pod's work, one file each: prepare, create, start, hook, kill, stop, remove."""
