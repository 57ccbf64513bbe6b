"""Benchmarks and reports: the command `python -m bench`, from the root of a checkout."""
