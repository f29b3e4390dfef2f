"""`glasslet calls`: the calls of one pod as a tree, and as files for other tools."""
