"""The parts of a node's status, one pure function each; `compose` puts them together."""
