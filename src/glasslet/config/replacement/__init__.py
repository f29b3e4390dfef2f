"""`glasslet check --replace`: what of this node would behave differently with glasslet than with the Go kubelet."""
