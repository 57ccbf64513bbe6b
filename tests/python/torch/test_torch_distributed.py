"""Products and training on two and three processes with gloo, or on two GPUs with NCCL, against one
process."""

import queue

import pytest
import torch
import torch.multiprocessing as multiprocessing

import distributed_ranks as ranks_of
from warploom.torch.distributed import PartitionedGraph

TWO_GPUS = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")


@pytest.fixture(
    scope="module",
    params=[(2, "gloo"), (3, "gloo"), pytest.param((2, "nccl"), marks=TWO_GPUS)],
    ids=lambda of: "-".join(map(str, of)),
)
def pool(request, tmp_path_factory):
    ranks, backend = request.param
    context = multiprocessing.get_context("spawn")
    folder = tmp_path_factory.mktemp("ranks")
    wanted = [context.Queue() for _ in range(ranks)]
    results = context.Queue()
    processes = [
        context.Process(
            target=ranks_of.serve, args=(rank, ranks, backend, folder, wanted[rank], results)
        )
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()

    def answer(name):
        while all(process.is_alive() for process in processes):
            try:
                return results.get(timeout=1)
            except queue.Empty:
                continue
        pytest.fail(f"{name}: a rank ended")

    def run(name):
        for names in wanted:
            names.put(name)
        for _ in processes:
            rank, error = answer(name)
            if error is not None:  # the other ranks may wait for this one
                for process in processes:
                    process.kill()
                pytest.fail(f"rank {rank}: {error}")

    run.backend = backend
    yield run
    for names in wanted:
        names.put(None)
    for process in processes:
        process.join(60)
        process.kill()


@pytest.mark.parametrize("name", ranks_of.CHECKS)
def test_ranks(pool, name):
    if "pyg" in name:
        pytest.importorskip("torch_geometric")
    if "memory" in name and pool.backend != "nccl":
        pytest.skip("needs two GPUs")
    pool(name)


def test_a_rank_that_dies_ends_the_others(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [
        context.Process(target=ranks_of.lose_a_rank, args=(rank, tmp_path, results))
        for rank in range(2)
    ]
    for process in processes:
        process.start()
    assert results.get(timeout=ranks_of.SECONDS).startswith("RuntimeError")
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 3]


def test_needs_a_process_group():
    with pytest.raises(RuntimeError, match="call init_process_group first"):
        PartitionedGraph.from_edge_index(ranks_of.edges_of(), ranks_of.NODES)
