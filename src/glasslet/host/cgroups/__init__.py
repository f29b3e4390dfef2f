"""The cgroup tree of this machine, version 1 or 2: discovery, limits, processes."""
