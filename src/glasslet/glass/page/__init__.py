"""The page: its files, its live stream, and what only it shows."""
