"""Dynamic resource allocation: drivers that prepare the devices of resource claims for the pods of this node."""
