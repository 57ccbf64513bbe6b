"""Benchmarks of warploom.torch and warploom.pyg: the command `python -m warploom.bench`."""
