"""Train the GCN of Kipf and Welling (ICLR 2017) in JAX, on Cora or on random data of its size.

python jax_gcn.py [EPOCHS [FOLDER]]     # the folder of cora.mtx.gz"""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.io import mmread

from warploom.jax import Graph, sddmm, spmm


def load(folder):
    graph, x = (mmread(f"{folder}/cora.{name}") for name in ("mtx.gz", "features.mtx.gz"))
    labels, train = (np.loadtxt(f"{folder}/cora.{name}.txt", int) for name in ("labels", "train"))
    return graph.col, graph.row, x.toarray().astype(np.float32), labels, train


def draw(nodes=2708, edges=10556, classes=7):
    rng = np.random.default_rng(0)
    labels, senders = np.sort(rng.integers(0, classes, nodes)), rng.integers(0, nodes, edges)
    receivers = (senders + rng.integers(-50, 50, edges)) % nodes
    x = rng.standard_normal((nodes, 64)) + 0.5 * np.eye(classes, 64)[labels]
    return senders, receivers, x.astype(np.float32), labels, rng.permutation(nodes)[:140]


def logits(weights, graph, norm, x):
    return spmm(graph, jax.nn.relu(spmm(graph, x @ weights[0], norm)) @ weights[1], norm)


@jax.jit
def step(weights, graph, norm, x, labels, train):
    def loss(weights):
        return -jax.nn.log_softmax(logits(weights, graph, norm, x))[train, labels[train]].mean()

    value, found = jax.value_and_grad(loss)(weights)
    return value, tuple(w - 0.5 * slope for w, slope in zip(weights, found))


def main(epochs=100, folder=None):
    senders, receivers, x, labels, train = load(folder) if folder else draw()
    senders, receivers = (np.append(one, np.arange(len(x))) for one in (senders, receivers))
    graph = Graph.from_edges(senders, receivers, rows=len(x))
    norm = sddmm(graph, *2 * [1 / jnp.sqrt(graph.degrees()[:, None])])
    make = partial(jax.nn.initializers.glorot_uniform(), jax.random.key(0))
    weights = make((x.shape[1], 16)), make((16, labels.max() + 1))
    for epoch in range(epochs):
        value, weights = step(weights, graph, norm, x, labels, train)
        if epoch % 20 == 0 or epoch == epochs - 1:
            print(f"epoch {epoch}: loss {value:.4f}")
    right = logits(weights, graph, norm, x).argmax(1) == labels
    print(f"accuracy over all nodes: {right.mean():.3f}")


if __name__ == "__main__":
    main(*(int(one) for one in sys.argv[1:2]), *sys.argv[2:])
