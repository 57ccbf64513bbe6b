"""Summaries, plots and HTML reports of what `warploom` measured."""
