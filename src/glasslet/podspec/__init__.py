"""From a pod to what the runtime is asked for. Pure: same inputs, same specification; no files, no clock."""
