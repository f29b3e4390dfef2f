"""Volumes of a CSI driver with the real controllers beside it: a lane of its own, `scripts/test-storage`."""
