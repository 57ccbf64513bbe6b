"""What the package does on a host without a C compiler: sums in float32 run, and all else says why
it does not. test_bare.py runs this program with an empty PATH, tools/bare_root in a root without
anything but Python."""

import shutil

import numpy as np
import scipy.sparse as sp

import warploom

rng = np.random.default_rng(1)
A = sp.random(200, 100, 0.05, format="csr", dtype=np.float32, random_state=1)
MISSING = "'cc' cannot be run; install a C compiler or set WARPLOOM_CC"


def refused(product, kind=RuntimeError):
    """Return the text of the exception that a product must raise."""
    try:
        product()
    except kind as error:
        return str(error)
    raise AssertionError("a product ran that needs a compiler")


def check_sums():
    """Compare sums of all widths and arguments with SciPy."""
    for n in (1, 7, 40, 64, 602):
        b, c = rng.random((100, n), np.float32), rng.random((200, n), np.float32)
        assert np.allclose(warploom.spmm(A, b), A @ b, atol=1e-5)
        expected = 2 * (A @ b) - c
        assert np.allclose(warploom.spmm(A, b, out=c, alpha=2, beta=-1), expected, atol=1e-5)
    plan = warploom.Plan(A, 64, expected_calls=1000)
    b = rng.random((100, 64), np.float32)
    assert plan.variant == "host_builtin"
    assert np.allclose(plan(b), A @ b, atol=1e-5)


def check_refusals():
    """Check that what needs a compiler says so and names the remedy."""
    b = rng.random((100, 8), np.float32)
    for options in ({"reduce": "max"}, {"message": "add"}, {"activation": "relu"}):
        assert MISSING in refused(lambda options=options: warploom.spmm(A, b, **options))
    wide = A.astype(np.float64)
    assert MISSING in refused(lambda: warploom.spmm(wide, b.astype(np.float64)))
    assert MISSING in refused(lambda: warploom.sddmm(A, rng.random((200, 8), np.float32), b))
    assert "there is no compiler" in refused(lambda: warploom.tune(A, 8))


def check_torch():
    """Check a product and its error through warploom.torch."""
    import torch

    import warploom.torch

    graph = warploom.torch.Graph(torch.tensor(A.indptr), torch.tensor(A.indices), cols=100)
    values, b = torch.tensor(A.data), torch.rand(100, 8)
    c = warploom.torch.spmm(graph, b, values)
    assert torch.allclose(c, torch.tensor(A @ b.numpy()), atol=1e-5)
    assert MISSING in refused(lambda: warploom.torch.spmm(graph, b, reduce="max"))


assert shutil.which("cc") is None
*_, host = warploom.devices()
assert host.compiler == "" and host.limits.startswith("no C compiler: only unsampled sums")
check_sums()
check_refusals()
try:
    import torch  # noqa: F401
except ImportError:
    print("without a compiler: sums run")
else:
    check_torch()
    print("without a compiler: sums run, also of torch")
