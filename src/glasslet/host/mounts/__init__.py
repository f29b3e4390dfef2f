"""Mounts: the kernel's mount table, mount and unmount calls, subPath binds, file systems, iSCSI disks."""
