"""The only reader and writer of cgroup files, both versions: discovery, limits, figures, processes."""
