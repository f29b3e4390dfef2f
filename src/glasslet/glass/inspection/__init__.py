"""All that the agent knows of one pod as one tree: `inspect` shows it, conditions of breaks read it."""
