"""Tests of warploom.torch run on the CPU and, if there is one, on a GPU."""

import pytest

torch = pytest.importorskip("torch")

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=NEEDS_GPU)])
def device(request):
    return torch.device(request.param)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
