"""The only code that touches the node's files, mounts and kernel tables; knows nothing of runtimes or of planning."""
