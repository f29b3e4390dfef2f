"""The parts of a node's status, a pure function over frozen values each; `compose` puts them together."""
