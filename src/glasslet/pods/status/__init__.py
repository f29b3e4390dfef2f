"""What is reported of a pod: its facts, its termination messages, its start time, its published status."""
