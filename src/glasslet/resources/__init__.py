"""The node's shares and reservations, and the tree of pod cgroups with its limits."""
