"""The container runtime in our own words: specifications, protocols, observed state. `cri/` speaks gRPC below it."""
