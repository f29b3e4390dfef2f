"""Who gets how much of the node: the tree of pod cgroups, its values, and what keeps it as it should be."""
