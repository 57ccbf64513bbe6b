"""Benchmarks of warploom.torch and warploom.pyg, which need torch and torch-geometric."""
