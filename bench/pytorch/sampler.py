"""Seeded neighbour sampling in the shape of PyG's NeighborLoader.

Seeds and the edges of a node are drawn as by `bench/neighbour.c`, and the first layer has the
same bits. That sampler samples the nodes of earlier layers again in each layer; this one does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bench.pytorch.graphs import Csr, Indices

Words = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STREAM_SEEDS, _STREAM_LAYER = 21, 22


def _mix(x: Words) -> Words:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: Words = x ^ (x >> np.uint64(31))
    return result


class Random:
    """Independent splitmix64 generators, one for each index."""

    def __init__(self, seed: int, stream: int, indices: Indices) -> None:
        base = _mix(np.array([seed], np.uint64) + np.uint64(stream) * _GOLDEN)
        self.state = _mix(base + indices.astype(np.uint64) * _GOLDEN)

    def below(self, limits: Indices) -> Indices:
        """Draw a number from 0 to limit - 1 of each generator, for limits below 2^32."""
        self.state = self.state + _GOLDEN
        return self._below(self.state, limits)

    def below_each(self, limits: Indices) -> Indices:
        """Draw the next numbers of one generator, one for each limit."""
        states = self.state + np.arange(1, len(limits) + 1, dtype=np.uint64) * _GOLDEN
        self.state = states[-1:]
        return self._below(states, limits)

    @staticmethod
    def _below(states: Words, limits: Indices) -> Indices:
        """Return the upper 64 bits of each product of a state and a limit."""
        word, limit = _mix(states), limits.astype(np.uint64)
        low = (word & np.uint64(0xFFFFFFFF)) * limit >> np.uint64(32)
        high = (word >> np.uint64(32)) * limit
        result: Indices = (high + low >> np.uint64(32)).astype(np.int64)
        return result


class Batch(NamedTuple):
    """Sampled edges between the nodes of a batch, whose first `seeds` nodes are the seeds."""

    edge_index: Indices  # (2, edges): sources and targets as indices into `nodes`; targets ascend
    nodes: Indices
    seeds: int


class Sampler:
    """Samples batches of a graph. The same seed gives the same batch on every machine."""

    def __init__(self, graph: Csr, seed_count: int, fanouts: tuple[int, ...]) -> None:
        self.graph = graph
        self.seed_count = min(seed_count, graph.nodes)
        self.fanouts = fanouts
        self._labels = np.full(graph.nodes, -1, np.int64)

    def _choose_seeds(self, seed: int) -> Indices:
        """Choose distinct nodes by Floyd's algorithm."""
        with np.errstate(over="ignore"):
            random = Random(seed, _STREAM_SEEDS, np.zeros(1, np.int64))
            chosen: dict[int, None] = {}
            for last in range(self.graph.nodes - self.seed_count, self.graph.nodes):
                node = int(random.below(np.array([last + 1]))[0])
                chosen[last if node in chosen else node] = None
        return np.fromiter(chosen, np.int64, len(chosen))

    def _choose_edges(
        self, nodes: Indices, first: int, fanout: int, seed: int, layer: int
    ) -> tuple[Indices, Indices]:
        """Choose min(degree, fanout) edges of each node from `first` on: sources and targets."""
        places = np.arange(first, len(nodes))
        starts = self.graph.rowptr[nodes[first:]]
        degrees = self.graph.rowptr[nodes[first:] + 1] - starts
        positions = np.tile(np.arange(fanout), (len(places), 1))
        long = np.flatnonzero(degrees > fanout)
        with np.errstate(over="ignore"):
            random = Random(seed, _STREAM_LAYER + layer, places[long])
            for taken in range(fanout):
                last = degrees[long] - fanout + taken
                drawn = random.below(last + 1)
                repeated = (positions[long, :taken] == drawn[:, None]).any(1)
                positions[long, taken] = np.where(repeated, last, drawn)
        kept = np.arange(fanout) < degrees[:, None]
        return self.graph.colind[(starts[:, None] + positions)[kept]], np.repeat(
            places, kept.sum(1)
        )

    def sample(self, seed: int) -> Batch:
        """Sample a batch. A node's edges are drawn in the layer that reaches it first."""
        nodes = self._choose_seeds(seed)
        self._labels[nodes] = np.arange(len(nodes))
        sources, targets, first = [], [], 0
        for layer, fanout in enumerate(self.fanouts):
            found, places = self._choose_edges(nodes, first, fanout, seed, layer)
            fresh = found[self._labels[found] < 0]
            met, order = np.unique(fresh, return_index=True)
            met = met[np.argsort(order)]
            first = len(nodes)
            nodes = np.concatenate([nodes, met])
            self._labels[met] = np.arange(first, len(nodes))
            sources.append(self._labels[found])
            targets.append(places)
        self._labels[nodes] = -1
        return Batch(
            np.stack([np.concatenate(sources), np.concatenate(targets)]), nodes, self.seed_count
        )
