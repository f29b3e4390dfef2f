"""A node under real pressure, beside the Go kubelet: a lane of its own, `scripts/test-pressure`."""
