"""Every argument of the public functions: a wrong one raises an error that begins with its name."""

import ast
import inspect
import pathlib
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import warploom

A = sp.random(6, 5, 0.5, format="csr", dtype=np.float32, random_state=1)
B = np.arange(10, dtype=np.float32).reshape(5, 2)
X = np.ones((6, 2), np.float32)
EDGES = np.array([[0, 1], [1, 2]])

PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "python" / "warploom"

# ---- how many ----------------------------------------------------------------------------------


def exported_names(tree):
    """The names in `__all__` of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            yield from ast.literal_eval(node.value)


def functions_of(node, is_public):
    """Each function below a node, with whether it is public."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            public = is_public(child.name)
            if isinstance(child, ast.FunctionDef):
                yield child, public
            yield from functions_of(
                child, lambda name, of=public: of and (name[0] != "_" or name == "__init__")
            )


def parameters_of(function):
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def test_private_functions_have_at_most_8_parameters():
    trees = {path: ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
    exported = {name for tree in trees.values() for name in exported_names(tree)}
    assert {"spmm", "Plan", "Graph", "gat"} <= exported
    found = [
        (path, *pair)
        for path, tree in trees.items()
        for pair in functions_of(tree, exported.__contains__)
    ]
    assert len(found) > 500
    many = [
        f"{path.name}: {function.name}"
        for path, function, public in found
        if not public and parameters_of(function) > 8
    ]
    assert many == []


def test_functions_of_the_binding_have_at_most_8_parameters():
    source = (PACKAGE / "_build.py").read_text()
    heads = re.findall(r"^(?:static )?(?:int|void) (\w+)\(([^)]*)\)", source, re.MULTILINE)
    assert len(heads) >= 7
    assert [name for name, parameters in heads if parameters.count(",") > 7] == []


# ---- texts -------------------------------------------------------------------------------------


def test_an_import_with_a_nul_byte_takes_no_line(tmp_path):
    warploom.tune(A, 2, budget=1)
    lines = warploom.export_db()
    with pytest.raises(ValueError, match="text: has a NUL byte at position 3"):
        warploom.import_db(text=lines[:3] + "\0" + lines)
    with pytest.raises(ValueError, match=f"text: has a NUL byte at position {len(lines)}"):
        warploom.import_db(text=lines + "\0no line\n")
    (tmp_path / "nul.jsonl").write_text(lines + "\0no line\n")
    with pytest.raises(ValueError):
        warploom.import_db(tmp_path / "nul.jsonl")
    assert warploom.export_db() == lines


def test_a_nul_byte_in_a_path_writes_no_file(tmp_path):
    for name in ("a\0.jsonl", b"a\0.jsonl"):
        path = (
            str(tmp_path) + "/" + name if isinstance(name, str) else bytes(tmp_path) + b"/" + name
        )
        with pytest.raises(ValueError, match="path: has a NUL byte"):
            warploom.export_db(path)
        with pytest.raises(ValueError, match="path: has a NUL byte"):
            warploom.import_db(path)
    assert list(tmp_path.iterdir()) == []


def test_a_long_operator_that_is_not_ascii():
    for length in range(1, 6000, 997):
        with pytest.raises(ValueError, match="operator"):
            warploom.spmm(A, B, operator="init=0;reduce=acc+" + "ä" * length)


# ---- memory that operands share ----------------------------------------------------------------


@pytest.mark.parametrize("shift", [0, 1, 2, 9])
def test_out_shares_no_memory_with_b(shift):
    square = sp.eye(5, format="csr", dtype=np.float32)
    memory = np.zeros(20 + shift, np.float32)
    b, out = memory[:10].reshape(5, 2), memory[shift : shift + 10].reshape(5, 2)
    plan = warploom.Plan(square, 2)
    for product in (lambda: warploom.spmm(square, b, out=out), lambda: plan(b, out=out)):
        with pytest.raises(ValueError, match="share memory"):
            product()
    after = memory[10:20].reshape(5, 2)
    assert warploom.spmm(square, b, out=after) is after


def test_out_may_lie_between_the_columns_of_b():
    square = sp.eye(5, format="csr", dtype=np.float32)
    both = np.arange(20, dtype=np.float32).reshape(5, 4)
    warploom.spmm(square, both[:, :2], out=both[:, 2:])
    assert np.array_equal(both[:, :2], both[:, 2:])
    with pytest.raises(ValueError, match="share memory"):
        warploom.spmm(square, both[:, :2], out=both[:, 1:3])


def test_out_shares_no_memory_with_other_operands():
    memory = np.zeros(64, np.float32)
    data = memory[: A.nnz]
    a = warploom.Matrix((A.indptr, A.indices, data), shape=A.shape)
    out = memory[A.nnz - 1 : A.nnz + 11].reshape(6, 2)
    with pytest.raises(ValueError, match="c and values share memory"):
        warploom.spmm(a, B, out=out)
    with pytest.raises(ValueError, match="c and values share memory"):
        warploom.spmm(A, B, values=data, out=out)
    with pytest.raises(ValueError, match="c and bias share memory"):
        warploom.spmm(A, B, bias=memory[3:5], out=memory[:12].reshape(6, 2))
    indices = np.zeros(64, np.int32)
    indices[: A.nnz] = A.indices
    a = warploom.Matrix((A.indptr, indices[: A.nnz], A.data), shape=A.shape)
    with pytest.raises(ValueError, match="c and colind share memory"):
        warploom.spmm(a, B, out=indices[1:13].view(np.float32).reshape(6, 2))
    with pytest.raises(ValueError, match="dvalues and x share memory"):
        warploom.sddmm(A, memory[:12].reshape(6, 2), B, out=memory[11 : 11 + A.nnz])


def test_a_workspace_shares_no_memory_with_operands():
    plan = warploom.Plan(A, 2, variant="host_nnz/nonzeros=1024,tile=16")
    size = plan.workspace_size
    memory = np.zeros(size + 160, np.uint8)
    memory = memory[-memory.ctypes.data % 16 :]
    b = memory[:40].view(np.float32).reshape(5, 2)
    with pytest.raises(ValueError, match="b and workspace share memory"):
        plan(b, workspace=memory[32:])
    assert np.array_equal(plan(b, workspace=memory[48:]), np.zeros((6, 2)))


# ---- masked arrays -----------------------------------------------------------------------------


def test_masked_arrays_are_refused():
    def mask(array):
        return np.ma.array(array, mask=False)

    with pytest.raises(TypeError, match="B: is a masked array"):
        warploom.spmm(A, mask(B))
    with pytest.raises(TypeError, match="out: is a masked array"):
        warploom.spmm(A, B, out=mask(np.zeros((6, 2), np.float32)))
    with pytest.raises(TypeError, match="values: is a masked array"):
        warploom.spmm(A, B, values=mask(A.data))
    with pytest.raises(TypeError, match="data: is a masked array"):
        warploom.Matrix((A.indptr, A.indices, mask(A.data)))
    with pytest.raises(TypeError, match="edge_index: is a masked array"):
        warploom.Matrix.from_edge_index(mask(EDGES))
    with pytest.raises(TypeError, match="col: is a masked array"):
        warploom.Matrix.from_coo(EDGES[0], mask(EDGES[1]))


# ---- values of every kind ----------------------------------------------------------------------


class Hostile:
    """An object whose attributes are no use."""

    shape = "shape"
    ndim = None

    def __len__(self):
        return 2


# fmt: off
WRONG = [
    None, True, -1, 0, 7, 2**31, 2**63, 2**64, -(2**70), 0.5, float("nan"), float("inf"), 1j,
    10**400, "", "nope", "\0", "a\0b", "\ud800", "ä" * 5000, b"a", b"\0", [], [1], (), (1, 2),
    (1, 2, 3), {}, {"share": "x"}, {"first": 3}, {3: 4}, set(), object(), Hostile(), Hostile, int,
    len, pathlib.Path("/"), np.zeros(0), np.zeros(3), np.zeros((2, 2)), np.float32(1), np.int64(3),
    np.array("text"), np.array([None]), np.ma.array([1.0], mask=[True]), np.zeros(2, "f4,u1"),
    np.zeros((6, 2), np.float16), np.zeros((1, 2), np.float32)[::-1],
    np.broadcast_to(np.float32(1), (6, 2)), sp.eye(3).tocsr(), sp.coo_array(([1.0], ([0],)), (3,)),
]
# fmt: on


def plan(**options):
    made = warploom.Plan(**{"A": A, "n": 2, **options})
    made.close()


CALLS = {
    "spmm": (lambda **o: warploom.spmm(**{"A": A, "B": B, **o}), warploom.spmm),
    "sddmm": (lambda **o: warploom.sddmm(**{"A": A, "X": X, "B": B, **o}), warploom.sddmm),
    "Plan": (plan, warploom.Plan),
    "execute": (lambda **o: warploom.Plan(A, 2)(**{"B": B, **o}), warploom.Plan.execute),
    "prepare": (lambda **o: warploom.Plan(A, 2).prepare(**o), warploom.Plan.prepare),
    "tune": (
        lambda **o: warploom.tune(**{"A": A, "n": 1, "progress": lambda *step: True, **o}),
        warploom.tune,
    ),
    "explain": (lambda **o: warploom.explain(**{"A": A, "n": 2, **o}), warploom.explain),
    "stats": (lambda **o: warploom.stats(**{"A": A, **o}), warploom.stats),
    "import_db": (lambda **o: warploom.import_db(**o), warploom.import_db),
    "Matrix": (lambda **o: warploom.Matrix(**{"source": A, **o}), warploom.Matrix.__init__),
    "arrays": (
        lambda **o: warploom.Matrix(**{"source": (A.indptr, A.indices, A.data), **o}),
        warploom.Matrix.__init__,
    ),
    "from_coo": (
        lambda **o: warploom.Matrix.from_coo(**{"row": EDGES[0], "col": EDGES[1], **o}),
        warploom.Matrix.from_coo,
    ),
    "from_bsr": (
        lambda **o: warploom.Matrix.from_bsr(**{"source": A.tobsr((1, 1)), **o}),
        warploom.Matrix.from_bsr,
    ),
    "from_edge_index": (
        lambda **o: warploom.Matrix.from_edge_index(**{"edge_index": EDGES, **o}),
        warploom.Matrix.from_edge_index,
    ),
    "validate": (lambda **o: warploom.Matrix(A).validate(**o), warploom.Matrix.validate),
}


def names_of(function):
    names = set(inspect.signature(function).parameters) - {"self", "cls", "options"}
    if "options" in inspect.signature(function).parameters:
        names |= set(warploom.Options.__annotations__)
    return sorted(names)


ARGUMENTS = [(call, name) for call, (_, function) in CALLS.items() for name in names_of(function)]


# What errors begin with: an argument, an operand or a struct of the C library, a file.
KNOWN = {name for _, name in ARGUMENTS}
KNOWN |= {"indptr", "width, norm", "b", "c", "wlm_problem", "wlm_csr"}
FIELD = r"wlm_[a-z_]+\.[a-z_.]+ "
OTHERS = (FIELD, r"\[Errno \d+\]", "the given text:", "/")
NAMED = re.compile(rf"(warploom: )?(({'|'.join(KNOWN)})\b|{'|'.join(OTHERS)})")


def check(call, name, value):
    """Call with one argument changed: it works, or the error begins with the name of one."""
    if name == "progress" and callable(value):
        return  # its own error is raised again
    try:
        CALLS[call][0](**{name: value})
    except (TypeError, ValueError, LookupError, OSError, MemoryError) as error:
        assert not isinstance(error, (UnicodeError, KeyError, IndexError)), repr(error)
        assert NAMED.match(str(error)), f"{call}({name}={value!r}): {error!r}"


@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_a_wrong_argument_is_named(call, name):
    for value in WRONG:
        check(call, name, value)


ANY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.lists(st.integers(-2, 9), max_size=4),
    st.tuples(st.integers(-1, 8), st.integers(-1, 8)),
    st.dictionaries(st.sampled_from(["share", "first", "challengers"]), st.floats(), max_size=2),
)


@settings(max_examples=400 if settings.default.derandomize else 20_000)
@given(st.sampled_from([pair for pair in ARGUMENTS if pair[0] != "tune"]), ANY)
def test_any_argument_is_taken_or_named(pair, value):
    check(*pair, value)


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (ValueError, "seed: -1", lambda: warploom.spmm(A, B, seed=-1)),
        (ValueError, "seed: 18446744073709551616", lambda: warploom.Plan(A, 2)(B, seed=2**64)),
        (ValueError, "seed: -1", lambda: warploom.tune(A, 2, seed=-1)),
        (TypeError, "variant: a int", lambda: warploom.Plan(A, 2, variant=7)),
        (ValueError, "variant: has a NUL", lambda: warploom.Plan(A, 2, variant="host_row\0")),
        (ValueError, "operator: has a NUL", lambda: warploom.spmm(A, B, operator="init=0\0;")),
        (ValueError, "activation: has a NUL", lambda: warploom.spmm(A, B, activation="relu\0")),
        (ValueError, "name: has a NUL", lambda: warploom.tune(A, 2, name="a\0b")),
        (TypeError, "online: first: a int", lambda: warploom.Plan(A, 2, online={"first": 3})),
        (TypeError, "online: 'yes' is no truth", lambda: warploom.Plan(A, 2, online="yes")),
        (TypeError, "transpose: 'no' is no truth", lambda: warploom.spmm(A, B, transpose="no")),
        (TypeError, "alpha: a str", lambda: warploom.spmm(A, B, alpha="1")),
        (TypeError, "progress: a int", lambda: warploom.tune(A, 2, progress=3)),
        (TypeError, "text: a int", lambda: warploom.import_db(text=3)),
        (TypeError, "path: a int", lambda: warploom.export_db(3)),
        (ValueError, r"shape: is \(7, 5\)", lambda: warploom.Matrix(A, shape=(7, 5))),
        (ValueError, "shape: 3 is not", lambda: warploom.Matrix((A.indptr, A.indices), shape=3)),
    ],
)
def test_wrong_arguments_of_one_kind(error, text, call):
    with pytest.raises(error, match=text):
        call()
