"""Write the C source of the binding `warploom._native` (cffi, API mode, limited API).

CMake runs this file at build time. The declarations come from the public headers themselves,
through the preprocessor, so the binding cannot differ from them.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from cffi import FFI

HEADERS = """\
#include <string.h>
#include <warploom/warploom_attention.h>
#include <warploom/warploom_message.h>
#include <warploom/warploom_tune.h>
#include "jax_handler.h"
"""
BINDING = Path(__file__).parents[1] / "binding"
CALLBACKS = """
extern "Python" void warploom_log(void *user, wlm_log_level level, const char *message);
extern "Python" int warploom_progress(
    void *user, int64_t done, int64_t total, const wlm_candidate_result *last);
extern "Python" void *warploom_allocate(void *user, int device, size_t size, void *stream);
extern "Python" void warploom_release(
    void *user, int device, void *memory, size_t size, void *stream);
"""

# Of the C library, which functions of the binding call.
STANDARD = "#include <math.h>\n#include <stdlib.h>\n"

# What a call without a plan runs wlm_spmm on; warploom_bind describes its matrix.
CALL = """
typedef struct warploom_call {
  const wlm_plan *plan;
  wlm_context *context;
  const wlm_problem *problem;
  wlm_csr csr;
} warploom_call;
"""
# The functions of hot paths take integers, so that Python fills no struct. Those that are named
# warploom_ are functions of the binding.
FUNCTIONS = """
/* `pattern` has the numbers of rows, columns and edges, the addresses of rowptr and colind, and the
 * types of both. Each call gives the values. */
static void warploom_bind(warploom_call *call, wlm_context *context, const wlm_problem *problem,
                          const int64_t *pattern, int has_values, int value_type) {
  const wlm_csr csr = WLM_CSR_INIT;
  call->plan = NULL;
  call->context = context;
  call->problem = problem;
  call->csr = csr;
  call->csr.rows = pattern[0];
  call->csr.cols = pattern[1];
  call->csr.nnz = pattern[2];
  call->csr.rowptr = (const void *)(uintptr_t)pattern[3];
  call->csr.colind = (const void *)(uintptr_t)pattern[4];
  call->csr.rowptr_type = pattern[5];
  call->csr.colind_type = pattern[6];
  call->csr.has_values = has_values;
  call->csr.value_type = value_type;
}

/* Describes another matrix of the same types for the same problem. */
static void warploom_bind_like(warploom_call *call, const warploom_call *like, int64_t rows,
                               int64_t cols, int64_t nnz, uintptr_t rowptr, uintptr_t colind) {
  *call = *like;
  call->csr.rows = rows;
  call->csr.cols = cols;
  call->csr.nnz = nnz;
  call->csr.rowptr = (const void *)rowptr;
  call->csr.colind = (const void *)colind;
}

static int64_t index_at(int type, uintptr_t array, int64_t at) {
  return type == WLM_I32 ? ((const int32_t *)array)[at] : ((const int64_t *)array)[at];
}

/* Copies edges on the host without self loops, and one loop for each of the first `nodes` nodes
 * behind them, as int64. Returns how many; the copy is NULL where there is no memory. */
static int64_t with_loops(const int64_t *edges, int64_t nodes, int64_t **copy) {
  const int64_t nnz = edges[2], most = nnz + nodes;
  int64_t count = 0, *row = *copy = malloc(2 * (most ? most : 1) * sizeof *row);
  if (!row) return 0;
  for (int64_t p = 0; p < nnz; p++) {
    const int64_t i = index_at(edges[5], edges[3], p), j = index_at(edges[5], edges[4], p);
    row[count] = i;
    row[most + count] = j;
    count += i != j;
  }
  for (int64_t i = 0; i < nodes; i++, count++) row[count] = row[most + count] = i;
  return count;
}

/* Weights D^-1/2 A D^-1/2 of a matrix of ones on the host; D: the edges of each row. */
#define NORMALISE(type, root)                                                                  \
  for (int64_t i = 0; i < rows; i++)                                                           \
    for (int64_t p = index_at(of, rowptr, i); p < index_at(of, rowptr, i + 1); p++) {          \
      const int64_t j = index_at(of, colind, p);                                               \
      const type by_row = index_at(of, rowptr, i + 1) - index_at(of, rowptr, i);               \
      const type by_column = index_at(of, rowptr, j + 1) - index_at(of, rowptr, j);            \
      ((type *)values)[p] = by_column ? 1 / root(by_column) * (1 / root(by_row)) : 0;          \
    }

static void normalise(int64_t rows, const int64_t *csr, int is_wide) {
  const uintptr_t rowptr = csr[0], colind = csr[1], values = csr[4];
  const int of = csr[3];
  if (is_wide) {
    NORMALISE(double, sqrt)
  } else {
    NORMALISE(float, sqrtf)
  }
}

/* `edges` has the numbers of rows, columns and edges, the addresses of row and column indices,
 * their type, and how many nodes get one self loop in the place of all loops, or -1; `csr` the
 * addresses of rowptr, colind and perm, their type, the address of the weights of GCN's norm or 0,
 * and whether these are f64. Loops and weights are for the host alone.
 *
 * Returns the number of edges, -100 on the host if some lie outside of the matrix, or another
 * negative number: of an error. */
static int64_t warploom_convert(wlm_context *context, const int64_t *edges, const int64_t *csr,
                                int is_host, uintptr_t stream) {
  wlm_coo coo = WLM_COO_INIT;
  int64_t *copy = NULL;
  coo.rows = edges[0];
  coo.cols = edges[1];
  coo.nnz = edges[2];
  coo.row = (const void *)(uintptr_t)edges[3];
  coo.col = (const void *)(uintptr_t)edges[4];
  coo.index_type = edges[5];
  if (edges[6] >= 0) {
    coo.nnz = with_loops(edges, edges[6], &copy);
    if (!copy) return -WLM_ERR_OUT_OF_MEMORY;
    coo.row = copy;
    coo.col = copy + edges[2] + edges[6];
    coo.index_type = WLM_I64;
  }
  coo.rowptr = (void *)(uintptr_t)csr[0];
  coo.colind = (void *)(uintptr_t)csr[1];
  coo.perm = (void *)(uintptr_t)csr[2];
  coo.rowptr_type = coo.colind_type = csr[3];
  coo.stream = (void *)stream;
  const int64_t status = wlm_csr_from_coo(context, &coo);
  free(copy);
  if (status) return -status;
  if (csr[4]) normalise(coo.rows, csr, csr[5]);
  return is_host && index_at(csr[3], csr[0], coo.rows) != coo.nnz ? -100 : coo.nnz;
}

#define DIVIDE(type)                                                                    \
  for (int64_t i = 0; i < rows; i++) {                                                  \
    const type degree = index_at(of, rowptr, i + 1) - index_at(of, rowptr, i);          \
    for (int64_t j = n * i; j < n * i + n; j++) ((type *)y)[j] = ((type *)x)[j] / degree; \
  }

/* Divides each row of x, on the host, by the number of edges of this row, which may be 0. */
static void warploom_divide_rows(uintptr_t x, uintptr_t y, int64_t rows, int64_t n, int is_wide,
                                 uintptr_t rowptr, int of) {
  if (is_wide) {
    DIVIDE(double)
  } else {
    DIVIDE(float)
  }
}

/* Adds at most 1 KiB to a hash. Factors are odd, so each change of one number is seen. */
static uint64_t add_block(uint64_t hash, const char *block, int64_t bytes) {
  static const uint64_t factors[8] = {
    0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu, 0xd6e8feb86659fd93u,
    0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu, 0x8ebc6af09c88c6e3u, 0x589965cc75374cc3u};
  for (int64_t at = 0; at < 1024 && at < bytes; at += 64) {
    uint64_t words[8] = {0}, sum = 0;
    memcpy(words, block + at, bytes - at < 64 ? bytes - at : 64);
    for (int i = 0; i < 8; i++) sum += words[i] * factors[i];
    hash = (hash ^ hash >> 29) * factors[0] + sum;
  }
  return hash;
}

/* Hashes memory. Block i of 1 KiB counts in hashes[i % count]. */
static void warploom_hash(uintptr_t memory, int64_t bytes, uint64_t *hashes, int64_t count) {
  for (int64_t i = 0; i < count; i++) hashes[i] = 0;
  for (int64_t at = 0, i = 0; at < bytes; at += 1024, i = i + 1 < count ? i + 1 : 0)
    hashes[i] = add_block(hashes[i], (const char *)memory + at, bytes - at);
}

/* Whether the blocks of hashes[part] are as they were. */
static int warploom_is_same(uintptr_t memory, int64_t bytes, const uint64_t *hashes, int64_t count,
                            int64_t part) {
  uint64_t hash = 0;
  for (int64_t at = 1024 * part; at < bytes; at += 1024 * count)
    hash = add_block(hash, (const char *)memory + at, bytes - at);
  return hash == hashes[part];
}

static int execute(const warploom_call *call, wlm_execute_args *args, uintptr_t workspace,
                   size_t workspace_size, uintptr_t stream) {
  args->workspace = (void *)workspace;
  args->workspace_size = workspace_size;
  args->stream = (void *)stream;
  if (call->plan) return wlm_plan_execute(call->plan, args);
  return wlm_spmm(call->context, &call->csr, call->problem, args);
}

/* `arrays` has the addresses of b, C, dC, the values, the positions, dB and the gradient of the
 * values (by argmax, or of an SDDMM), and the leading dimensions of b and C. */
static int warploom_run(const warploom_call *call, const int64_t *arrays, double alpha, double beta,
                        uint64_t seed, uintptr_t workspace, size_t workspace_size,
                        uintptr_t stream) {
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = (const void *)(uintptr_t)arrays[0];
  args.c = (void *)(uintptr_t)arrays[1];
  args.x = (const void *)(uintptr_t)arrays[2];
  args.values = (const void *)(uintptr_t)arrays[3];
  args.argmax = (void *)(uintptr_t)arrays[4];
  args.argmax_db = (void *)(uintptr_t)arrays[5];
  args.dvalues = args.argmax_dvalues = (void *)(uintptr_t)arrays[6];
  args.ldb = arrays[7];
  args.ldc = arrays[8];
  args.alpha = alpha;
  args.beta = beta;
  args.seed = seed;
  return execute(call, &args, workspace, workspace_size, stream);
}

/* The same for attention. `arrays` are the addresses of b, C, dC, the edges' terms, the two
 * arrays that the score reads besides, softmax, delta, the gradients of the edges' terms and of the
 * second of those arrays, and the bias, and then the leading dimension of left and right, and
 * the score. With dC the second one is dB. `factor` is the slope of leaky_relu or the scale of
 * products. */
static int attend(const warploom_call *call, const int64_t *arrays, double factor, double dropout,
                  uint64_t seed, uintptr_t workspace, size_t workspace_size, uintptr_t stream) {
  wlm_attention_operands attention = WLM_ATTENTION_OPERANDS_INIT;
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  const void *first = (const void *)(uintptr_t)arrays[4];
  const void *second = (const void *)(uintptr_t)arrays[5];
  void *gradient = (void *)(uintptr_t)arrays[9];
  const int score = (int)arrays[12];
  args.attention = &attention;
  args.b = (const void *)(uintptr_t)arrays[0];
  args.c = args.db = (void *)(uintptr_t)arrays[1];
  args.x = (const void *)(uintptr_t)arrays[2];
  args.values = (const void *)(uintptr_t)arrays[3];
  attention.softmax = (void *)(uintptr_t)arrays[6];
  attention.delta = (const void *)(uintptr_t)arrays[7];
  attention.dscores = (void *)(uintptr_t)arrays[8];
  args.bias = (const void *)(uintptr_t)arrays[10];
  *(score == WLM_SCORE_GAT ? &attention.left : &attention.q) = first;
  switch (score) {
    case WLM_SCORE_GAT: attention.right = second, attention.dright = gradient; break;
    case WLM_SCORE_DOT: attention.k = second, attention.dk = gradient; break;
    default: attention.att = second, attention.datt = gradient; break;
  }
  attention.slope = attention.scale = factor;
  attention.ldt = arrays[11];
  attention.dropout = dropout;
  args.seed = seed;
  return execute(call, &args, workspace, workspace_size, stream);
}

/* The steps of attention or of its gradients, one after the other, up to a NULL in `calls`. Each
 * has 14 numbers of `arrays`: those of `attend`, and a 0; or those of warploom_run, and at the
 * end 1, or 2 for alpha = `factor`. */
static int warploom_steps(warploom_call *const *calls, const int64_t *arrays, double factor,
                          double dropout, uint64_t seed, uintptr_t workspace, size_t workspace_size,
                          uintptr_t stream) {
  for (; *calls; calls++, arrays += 14) {
    const int status = arrays[13] ? warploom_run(*calls, arrays, arrays[13] == 2 ? factor : 1, 0, 0,
                                                 workspace, workspace_size, stream)
                                  : attend(*calls, arrays, factor, dropout, seed, workspace,
                                           workspace_size, stream);
    if (status) return status;
  }
  return 0;
}

/* The same for messages. `operands` has a count, the address of the values, and then the address
 * and the leading dimension of each operand; `scalars` has a number for each. `results` has a
 * count, and then the addresses of each result and of its positions. Results are dense. */
static int warploom_message(const warploom_call *call, const int64_t *operands,
                            const double *scalars, const int64_t *results, uint64_t seed,
                            uintptr_t workspace, size_t workspace_size, uintptr_t stream) {
  wlm_message_args message = WLM_MESSAGE_ARGS_INIT;
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  for (int64_t i = 0; i < operands[0]; i++) {
    message.operands[i] = (const void *)(uintptr_t)operands[2 + 2 * i];
    message.operand_ld[i] = operands[3 + 2 * i];
    message.scalars[i] = scalars[i];
  }
  for (int64_t i = 0; i < results[0]; i++) {
    message.results[i] = (void *)(uintptr_t)results[1 + 2 * i];
    message.positions[i] = (void *)(uintptr_t)results[2 + 2 * i];
  }
  args.operands = &message;
  args.values = (const void *)(uintptr_t)operands[1];
  args.seed = seed;
  return execute(call, &args, workspace, workspace_size, stream);
}
"""


def declarations(compiler: str, include: str) -> str:
    """Return the declarations of the public headers, without those of the C library."""
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stddef.h", "stdint.h", "string.h"):
            (Path(empty) / name).touch()
        command = [compiler, "-E", "-P", "-nostdinc", "-I", empty, "-I", include]
        command += ["-I", str(BINDING), "-x", "c", "-"]
        done = subprocess.run(command, input=HEADERS, check=True, capture_output=True, text=True)
    return re.sub(r"__attribute__\(\(.*?\)\)\)?", "", done.stdout)


def main(compiler: str, include: str, output: str) -> None:
    ffi = FFI()
    own = re.findall(r"^static (\w+ warploom_\w+\([^)]*\))", FUNCTIONS, re.MULTILINE)
    ffi.cdef(declarations(compiler, include) + CALLBACKS + CALL + "".join(f"{f};" for f in own))
    ffi.set_source("warploom._native", STANDARD + HEADERS + CALL + FUNCTIONS, py_limited_api=True)
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
