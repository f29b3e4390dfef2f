"""Files and directories of the agent and its pods: atomic writes, state files, safe removal, the layout on disk."""
