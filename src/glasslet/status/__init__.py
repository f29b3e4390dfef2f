"""PodStatus: built here from facts (pure), published by its one writer. Never calls the runtime."""
