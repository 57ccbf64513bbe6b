"""Memory, threads and forks."""

import gc
import os
import threading
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import warploom
from forked import in_a_child, in_another_thread
from warploom import _library

A = sp.random(300, 200, 0.05, format="csr", dtype=np.float32, random_state=1)
B = np.random.default_rng(1).standard_normal((200, 8)).astype(np.float32)
C = A @ B


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def use_one_matrix():
    a = warploom.Matrix(A.copy())
    warploom.spmm(a, B)
    plan = warploom.Plan(a, 8)
    plan(B)
    with pytest.raises(ValueError, match="B: has shape"):
        plan(B[1:])


def test_ten_thousand_matrices_leak_no_memory():
    for _ in range(1000):
        use_one_matrix()
    gc.collect()
    before = resident_bytes()
    for _ in range(10_000):
        use_one_matrix()
    gc.collect()
    assert resident_bytes() - before < 4 << 20  # 10,000 of these matrices take 250 MB


def test_plans_and_matrices_keep_operands_alive():
    data = np.ones(A.nnz, np.float32)
    seen = weakref.ref(data)
    plan = warploom.Plan(warploom.Matrix((A.indptr, A.indices, data), shape=A.shape), 8)
    del data
    gc.collect()
    assert seen() is not None
    assert np.isfinite(plan(B)).all()
    plan.rebind(A)
    gc.collect()
    assert np.allclose(plan(B), C, atol=1e-5)
    del plan
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("options", [{}, {"online": True}, {"expected_calls": 1}])
def test_every_plan_can_be_closed(options):
    with warploom.Plan(A, 8, **options) as plan:
        assert np.allclose(plan(B), C, atol=1e-5)
    plan.close()
    assert "closed" in repr(plan)
    for use in (
        lambda: plan(B),
        lambda: plan.variant,
        lambda: plan.workspace_size,
        lambda: plan.explain(),
        lambda: plan.prepare(),
        lambda: plan.online_state(),
        lambda: plan.rebind(A),
    ):
        with pytest.raises(ValueError, match="the plan is closed; make a new one"):
            use()
    with pytest.raises(KeyError), warploom.Plan(A, 8) as plan:
        raise KeyError("mine")
    assert "closed" in repr(plan)


def test_a_closed_plan_releases_its_memory():
    data = np.ones(A.nnz, np.float32)
    seen = weakref.ref(data)
    plan = warploom.Plan(warploom.Matrix((A.indptr, A.indices, data), shape=A.shape), 8)
    del data
    plan.close()
    plan.matrix = None
    gc.collect()
    assert seen() is None


def test_close_is_refused_during_a_call():
    plan = warploom.Plan(A, 8)
    with plan._runs, pytest.raises(RuntimeError, match="close: another thread executes"):
        plan.close()
    assert np.allclose(plan(B), C, atol=1e-5)


def test_rebind_takes_other_sizes():
    plan = warploom.Plan(A, 8, expected_calls=1)
    for rows in (1, 300, 7, 0):
        block = A[:rows]
        plan.rebind(block)
        assert plan.matrix.shape == (rows, 200)
        assert np.allclose(plan(B), C[:rows], atol=1e-5)
    with pytest.raises(ValueError, match="the plan is for a rowptr of i32"):
        plan.rebind(warploom.Matrix((A.indptr.astype(np.int64), A.indices, A.data)))
    assert plan(B).shape == (0, 8)  # the failed rebind kept the matrix


def in_threads(count, work):
    errors = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_threads_share_a_matrix_and_a_plan():
    a = warploom.Matrix(A)
    plan = warploom.Plan(a, 8)

    def work(number):
        for _ in range(50):
            assert np.allclose(plan(B), C, atol=1e-5)
            assert np.allclose(warploom.spmm(a, B), C, atol=1e-5)
            n = 1 + number % 4
            assert np.allclose(warploom.Plan(a, n)(B[:, :n].copy()), C[:, :n], atol=1e-5)
            with pytest.raises(ValueError, match="B: has shape"):
                plan(B[number:1])  # the error text belongs to this thread

    in_threads(8, work)


def test_rebind_is_refused_during_a_call():
    plan = warploom.Plan(A, 8, expected_calls=1)
    with plan._runs, pytest.raises(RuntimeError, match="rebind: another thread executes"):
        plan.rebind(A)
    plan.rebind(A)


def test_the_host_works_in_a_child():
    plan = warploom.Plan(A, 8)
    plan(B)
    large = np.repeat(B, 64, axis=1)  # large enough for several threads
    warploom.spmm(A, large)

    def work():
        assert np.allclose(plan(B), C, atol=1e-5)
        assert warploom.spmm(A, large).shape == (300, 512)
        assert warploom.Plan(A, 3).n == 3
        return "works"

    assert in_a_child(work) == "works"


def test_locks_of_other_threads_are_free_in_a_child():
    matrix = warploom.Matrix(A)
    plan = warploom.Plan(matrix, 8)

    def work():
        assert np.allclose(warploom.spmm(matrix, B), C, atol=1e-5)
        assert np.allclose(plan(B), C, atol=1e-5)
        assert warploom.Plan(A, 5).n == 5
        with pytest.raises(RuntimeError, match="configure: a device is open"):
            warploom.configure()
        plan.close()
        return "works"

    for lock in (_library._lock, matrix._lock, plan._runs._lock, plan._runs):
        with in_another_thread(lock):
            assert in_a_child(work) == "works"
    assert np.allclose(plan(B), C, atol=1e-5)


def test_cuda_in_a_child_is_refused(monkeypatch):
    opened = object.__new__(_library.Context)  # simulates a GPU that this process has used
    opened.device = "cuda:0"
    monkeypatch.setitem(_library._contexts, "cuda:0", opened)
    monkeypatch.setattr(_library, "_open", {opened})

    def work():
        for use in (lambda: _library.context("cuda:0"), lambda: _library.context("cuda:1")):
            with pytest.raises(RuntimeError, match=r'forked.*start workers with the "spawn"'):
                use()
        assert [device.device for device in warploom.devices()] == ["host"]
        assert np.allclose(warploom.spmm(A, B), C, atol=1e-5)
        return "refused"

    assert in_a_child(work) == "refused"
