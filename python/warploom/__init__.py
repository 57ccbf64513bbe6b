"""Autotuned sparse-dense matrix multiplication (SpMM) on GPUs and hosts."""
