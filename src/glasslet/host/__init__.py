"""The node's files, mounts, cgroups and kernel tables; knows nothing of runtimes or of planning.

All that a container or another party can change is read and written by functions of this room. Other rooms touch files
of their own only: tests/unit/test_file_access.py lists them.
"""
