"""`glasslet up` and `down`: pods from files on one machine, with an agent and a containerd of their own."""
