"""Benchmarks: whole programs against each other on one machine, figures as ratios. `python -m benchmarks.<name>`."""
