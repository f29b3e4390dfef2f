"""What must be on disk before a container starts: one file per volume type behind one small protocol."""
