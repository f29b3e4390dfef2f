"""CPU, memory, process and I/O figures of cgroups, read from the kernel's files for cgroup v1 and v2."""
