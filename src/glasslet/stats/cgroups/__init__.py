"""Use of cgroups as people ask for it: CPU rates, open files, and which cgroup a container is in."""
