"""The kubelet of a node is replaced under its pods: a lane of its own, `scripts/test-replacement`."""
