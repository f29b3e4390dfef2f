"""One file per thing that is done to a pod or a container: prepare, create, start, hook, kill, stop, remove."""
