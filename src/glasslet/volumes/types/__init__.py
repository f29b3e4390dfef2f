"""One file per volume type: what it needs of the node, how it is set up and taken down."""
