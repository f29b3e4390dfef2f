"""Usage of file systems, writable layers, logs and volumes."""
