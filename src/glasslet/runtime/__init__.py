"""The container runtime: specifications, protocols, observed state. `cri/` implements them over gRPC."""
