"""A debugger in the running agent: the session, and the process that keeps the node meanwhile."""
