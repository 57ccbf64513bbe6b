"""Benchmarks of warploom.torch and warploom.pyg: `python -m warploom.bench torch`, `python -m warploom.bench summary`."""
