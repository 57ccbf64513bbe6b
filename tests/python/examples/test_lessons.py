"""The programs of the lessons run, and the lines of docs/instead.md give what they replace."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


def run(page, folder, **replaced):
    """Run the blocks of Python of a page as one program, and return what it prints."""
    import warploom

    program = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S))
    for old, new in replaced.items():
        assert old in program
        program = program.replace(old, new)
    path = [str(Path(warploom.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    env = {"PYTHONPATH": os.pathsep.join(path), "XDG_DATA_HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_numpy(tmp_path):
    pytest.importorskip("scipy")
    lines = run("learn-python.md", tmp_path, **{"budget=20": "budget=1"}).splitlines()
    assert lines[0] == "True"
    assert lines[1].startswith("host_") and lines[2].startswith("host_")
    assert any(line.startswith("kernel    host_") for line in lines)
    assert "step      fingerprint: this very matrix was tuned for this n" in lines


def test_pyg(tmp_path):
    pytest.importorskip("torch_geometric")
    assert run("learn-pyg.md", tmp_path).strip() == "{'GCNConv': {'warploom': 40}}"


def rows(section):
    """The code of both columns of a table."""
    text = (DOCS / "instead.md").read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    for line in text.splitlines():
        cells = re.findall(r"^\| `(.*?)`.* \| `(.*)` \|$", line)
        if cells:
            yield cells[0]


def names():
    torch = pytest.importorskip("torch")
    utils = pytest.importorskip("torch_geometric.utils")
    import warploom.torch

    torch.manual_seed(1)
    n = 20
    edge_index = torch.unique(torch.randint(n, (2, 90)), dim=1)[:, torch.randperm(60)]
    col, row = edge_index
    w = torch.rand(60) + 1
    graph = warploom.torch.Graph.from_edge_index(edge_index, w, rows=n, cols=n)
    A = torch.sparse_coo_tensor(edge_index.flip(0), w, (n, n)).coalesce().to_sparse_csr()
    x, b = torch.randn(n, 8), torch.randn(n, 8)
    return {
        **{"torch": torch, "warploom": warploom, "graph": graph, "A": A, "x": x, "b": b, "h": x},
        **{"w": w, "e": torch.randn(60, 8), "row": row, "col": col, "scatter": utils.scatter},
        **{"relu": torch.relu, "softmax": utils.softmax, "q": x, "k": b, "s": w},
        "scores": torch.randn(60),
    }


def by_hand(given):
    """What the lines of DGL compute, which is not installed."""
    scatter, x, w, row, col, e = (given[name] for name in ("scatter", "h", "w", "row", "col", "e"))
    return {
        "copy_u, sum": scatter(x[col], row),
        "u_mul_e, sum": scatter(x[col] * w[:, None], row),
        "copy_u, max": scatter(x[col], row, reduce="max"),
        "u_add_e, mean": scatter(x[col] + e, row, reduce="mean"),
        "u_dot_v": (given["q"][row] * given["k"][col]).sum(1)[given["graph"].perm],
        "edge_softmax": given["softmax"](w, row)[given["graph"].perm],
        "gspmm": scatter(x[col] * w[:, None], row),
    }


def test_instead_of_dgl():
    given = names()
    expected = by_hand(given)
    seen = set()
    for old, new in rows("DGL"):
        kind = ", ".join(re.findall(r"fn\.(\w+)", old)) or re.search(r"(\w+)\(", old)[1]
        given["torch"].testing.assert_close(eval(new, given), expected[kind])
        seen.add(kind)
    assert seen == set(expected)


def test_instead_of_torch_and_pyg():
    given = names()
    torch, graph, A = given["torch"], given["graph"], given["A"]
    in_order = lambda of_edges: of_edges[graph.perm]  # noqa: E731
    expected = {
        "torch.sparse.mm(A, b)": A @ given["b"],
        'torch.sparse.mm(A, b, "max")': torch.sparse.mm(A, given["b"], "max"),
        "torch.sparse.mm(A.t(), b)": A.to_dense().T @ given["b"],
        "torch.sparse.sampled_addmm(A, x, b.t())": in_order(
            (given["x"][given["row"]] * given["b"][given["col"]]).sum(1)
        ),
        "torch.sparse.softmax(scores, 1)": in_order(
            given["softmax"](given["scores"], given["row"])
        ),
    }
    for old, new in rows("torch.sparse"):
        scores = {"scores": in_order(given["scores"])}
        torch.testing.assert_close(eval(new, {**given, **scores}), expected.pop(old))
    assert not expected
    lines = [
        pair for pair in rows("PyTorch Geometric") if re.match(r"(scatter|softmax)\(", pair[0])
    ]
    assert len(lines) == 4
    for old, new in lines:
        result = eval(old, given)
        result = in_order(result) if old.startswith("softmax") else result
        torch.testing.assert_close(eval(new, given), result)
