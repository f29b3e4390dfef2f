"""A whole machine: Debian 12 with systemd, cgroup v2, logind and containerd in qemu, the control plane beside it.

`scripts/test-machine` runs these tests; they need root, qemu and debootstrap. Elsewhere they are skipped.
"""
