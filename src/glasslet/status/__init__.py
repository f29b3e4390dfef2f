"""PodStatus: built here from facts (pure), published by its one writer. Never asks the runtime anything."""
