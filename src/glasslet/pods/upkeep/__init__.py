"""Work on pods beside their workers' steps: unwanted pods, orphaned folders, volume refresh, remains."""
