"""Finds circles in a graph."""

from graphlib import CycleError, TopologicalSorter


def find_circle(graph):
    """Nodes of a circle in their order, the first one again at the end; [] if there is none."""
    try:
        TopologicalSorter({node: sorted(graph[node]) for node in sorted(graph)}).prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []
