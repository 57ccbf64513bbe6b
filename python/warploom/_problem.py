"""The options of a product, and their conversion to a wlm_problem."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypedDict

from warploom import _arguments
from warploom._arguments import choose, flag, integer
from warploom._arrays import DENSE_TYPES
from warploom._library import ffi, lib, new

if TYPE_CHECKING:
    from typing_extensions import Unpack

OPERATIONS = {"spmm": lib.WLM_SPMM, "sddmm": lib.WLM_SDDMM}
MESSAGES = {
    name: getattr(lib, "WLM_" + name.upper())
    for name in ("mul", "copy_b", "copy_a", "add", "sub", "rsub", "div", "rdiv")
}
REDUCTIONS = {
    name: getattr(lib, "WLM_" + name.upper()) for name in ("sum", "mean", "max", "min", "prod")
}
EMPTY = {"zero": lib.WLM_EMPTY_ZERO, "identity": lib.WLM_EMPTY_IDENTITY}
ORDERS = {"C": lib.WLM_ROW_MAJOR, "F": lib.WLM_COLUMN_MAJOR}
SAMPLES = {
    "bucket": lib.WLM_SAMPLE_BUCKET,
    "fastrand": lib.WLM_SAMPLE_FASTRAND,
    "fastrand_coprime": lib.WLM_SAMPLE_FASTRAND_COPRIME,
}
NORMS = {"none": lib.WLM_NORM_NONE, "kept": lib.WLM_NORM_KEPT, "unbiased": lib.WLM_NORM_UNBIASED}


class Options(TypedDict, total=False):
    """The options that are fixed for a plan. All have defaults.

    reduce: "sum" (default), "mean", "max", "min" or "prod".
    message: "mul" (default, a * b), "copy_b", "copy_a", "add" (a + b), "sub" (b - a),
        "rsub" (a - b), "div" (b / a) or "rdiv" (a / b); a is the value of an edge (1 where A has
        no values), b an element of B.
    operator: a user-defined operator as C expressions instead of `reduce`, for example
        "message=fmaxf(a*b,0);init=0;reduce=acc+x;combine=reduce"; warploom.h describes them.
    empty: result of an empty row: "zero" (default; 1 for prod) or "identity" (-inf for max).
    activation: an expression over x, applied at the end: "relu", "leaky_relu(x,0.2)".
    transpose: multiply by A^T instead of A.
    heads: values per edge; each belongs to n / heads neighbouring columns.
    argmax: for max and min, also return the position of the edge that each element comes from.
    sample, width, norm: use at most `width` (8 to 2304) edges of a row: sample is "bucket",
        "fastrand" or "fastrand_coprime"; norm of a sum is "none" (default), "kept" or "unbiased".
    deterministic: only kernels that give the same bits every time.
    batch: a number of products of one pattern, computed together: B, out and values then have one
        dimension more in front, of this size, or B and values are those of all products.
    """

    reduce: str
    message: str
    operator: str | None
    empty: str
    activation: str | None
    transpose: bool
    heads: int
    argmax: bool
    sample: str | None
    width: int
    norm: str
    deterministic: bool
    batch: int | None


_NAMES = frozenset(Options.__annotations__)


class Problem:
    """A `wlm_problem` and the texts that it points to."""

    def __init__(
        self,
        n: int,
        dtype: str,
        *,
        operation: str = "spmm",
        bias: bool = False,
        expected_calls: int = 1,
        argmax_type: int = lib.WLM_I32,
        b_order: str = "C",
        c_order: str = "C",
        **options: Unpack[Options],
    ) -> None:
        unknown = sorted(set(options) - _NAMES)
        if unknown:
            raise TypeError(
                f"{unknown[0]}: is no option; the options are {', '.join(sorted(_NAMES))}"
            )
        self.struct = struct = new("wlm_problem")
        self._texts: list[Any] = []
        self.n, self.dtype = integer("n", n), dtype
        self.transpose = flag("transpose", options.get("transpose", False))
        self.heads = integer("heads", options.get("heads", 1), least=1)
        self.argmax = flag("argmax", options.get("argmax", False))
        struct.n = self.n
        struct.operation = choose("operation", operation, OPERATIONS)
        self.sddmm = struct.operation == lib.WLM_SDDMM
        struct.message = choose("message", options.get("message", "mul"), MESSAGES)
        has_operator = options.get("operator") is not None
        self.needs_b = struct.message != lib.WLM_COPY_A or has_operator
        struct.reduce = choose("reduce", options.get("reduce", "sum"), REDUCTIONS)
        if has_operator:
            struct.reduce = lib.WLM_CUSTOM
            struct.custom = self._text("operator", options["operator"])
        struct.empty = choose("empty", options.get("empty", "zero"), EMPTY)
        struct.dense_type = choose("dtype", dtype, DENSE_TYPES)
        struct.transpose = self.transpose
        struct.heads = self.heads
        struct.want_argmax = self.argmax
        self.b_order, self.c_order = b_order, c_order
        struct.b_order = choose("b_order", b_order, ORDERS)
        struct.c_order = choose("c_order", c_order, ORDERS)
        struct.argmax_type = argmax_type
        struct.epilogue.bias = flag("bias", bias)
        struct.epilogue.activation = self._text("activation", options.get("activation"))
        if options.get("sample") is not None:
            struct.sampling.sample = choose("sample", options["sample"], SAMPLES)
            struct.sampling.norm = choose("norm", options.get("norm", "none"), NORMS)
            struct.sampling.width = integer("width", options.get("width", 0))
        elif "width" in options or "norm" in options:
            raise ValueError("width, norm: need sample")
        self.batch = options.get("batch")
        if self.batch is not None:
            struct.batch = self.batch = integer("batch", self.batch)
        struct.policy.deterministic = flag("deterministic", options.get("deterministic", False))
        struct.policy.expected_calls = integer("expected_calls", expected_calls)

    def _text(self, name: str, value: str | None) -> Any:
        if value is None:
            return ffi.NULL
        self._texts.append(_arguments.text(name, value))
        return self._texts[-1]


_kept = functools.lru_cache(maxsize=1024, typed=True)(Problem)


def problem(n: int, dtype: str, **options: Any) -> Problem:
    """Return the Problem of these options; equal options give the same object."""
    try:
        return _kept(n, dtype, **options)
    except TypeError:  # an unhashable option, for which Problem raises a clear error
        return Problem(n, dtype, **options)
