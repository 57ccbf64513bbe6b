"""Products and training on two and three processes with gloo, or on the GPUs of this machine with
NCCL, against one process."""

import queue

import pytest
import torch
import torch.multiprocessing as multiprocessing

import distributed_ranks as ranks_of
from warploom.torch.distributed import PartitionedGraph


class Ranks:
    """Processes of a group that run checks. After a check that failed there are new ones, since
    ranks may still wait for each other."""

    def __init__(self, ranks, backend, new_folder):
        self.ranks, self.backend = ranks, backend
        self._new_folder, self._processes = new_folder, []

    def _start(self):
        context = multiprocessing.get_context("spawn")
        folder = self._new_folder()
        self._wanted = [context.Queue() for _ in range(self.ranks)]
        self._results = context.Queue()
        for rank, wanted in enumerate(self._wanted):
            group = (rank, self.ranks, self.backend, folder)
            args = (*group, wanted, self._results)
            self._processes.append(context.Process(target=ranks_of.serve, args=args))
            self._processes[-1].start()

    def _kill(self):
        for process in self._processes:
            process.kill()
        self._processes = []

    def _answer(self):
        while all(process.is_alive() for process in self._processes):
            try:
                return self._results.get(timeout=1)
            except queue.Empty:
                continue
        return "?", "a rank ended"

    def run(self, name):
        if not self._processes:
            self._start()
        for wanted in self._wanted:
            wanted.put(name)
        for _ in range(self.ranks):
            rank, error = self._answer()
            if error is not None:
                self._kill()
                pytest.fail(f"{name}, rank {rank}: {error}")

    def stop(self):
        if self._processes:
            for wanted in self._wanted:
                wanted.put(None)
        for process in self._processes:
            process.join(60)
        self._kill()


@pytest.fixture(
    scope="module",
    params=[(2, "gloo"), (3, "gloo"), *((ranks, "nccl") for ranks in (2, 4, 8))],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def pool(request, tmp_path_factory):
    ranks, backend = request.param
    if backend == "nccl" and torch.cuda.device_count() < ranks:
        pytest.skip(f"needs {ranks} GPUs")
    pool = Ranks(ranks, backend, lambda: tmp_path_factory.mktemp("ranks"))
    yield pool
    pool.stop()


@pytest.mark.parametrize("name", ranks_of.CHECKS)
def test_ranks(pool, name):
    if "pyg" in name:
        pytest.importorskip("torch_geometric")
    if "memory" in name and pool.backend != "nccl":
        pytest.skip("needs two GPUs")
    pool.run(name)


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
