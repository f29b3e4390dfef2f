"""The container runtime in our own words: specifications, protocols, the observed state. `cri/` speaks gRPC below it."""
