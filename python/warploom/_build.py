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

CALLBACKS = """
extern "Python" void warploom_log(void *user, wlm_log_level level, const char *message);
extern "Python" int warploom_progress(
    void *user, int64_t done, int64_t total, const wlm_candidate_result *last);
extern "Python" void *warploom_allocate(void *user, int device, size_t size, void *stream);
extern "Python" void warploom_release(
    void *user, int device, void *memory, size_t size, void *stream);
"""

# One product with addresses as integers, so that the caller's hot path fills no struct and makes no
# object. Without a plan it is a call of wlm_spmm.
CALL = """
typedef struct warploom_call {
  const wlm_plan *plan;
  wlm_context *context;
  const wlm_csr *csr;
  const wlm_problem *problem;
} warploom_call;
"""
RUN = """
int warploom_run(const warploom_call *call, uintptr_t b, uintptr_t c, uintptr_t x, uintptr_t values,
                 uintptr_t argmax, uintptr_t db, uintptr_t dvalues, int64_t ldb, int64_t ldc,
                 double alpha, uint64_t seed, uintptr_t workspace, size_t workspace_size,
                 uintptr_t stream)"""
# The same for attention: its gradient where x is given, and then c is dB.
ATTEND = """
int warploom_attend(const warploom_call *call, uintptr_t b, uintptr_t c, uintptr_t x,
                    uintptr_t values, uintptr_t left, uintptr_t right, uintptr_t lse,
                    uintptr_t delta, uintptr_t dvalues, uintptr_t dright, double slope, int64_t ldt,
                    double dropout, uint64_t seed,
                    uintptr_t workspace, size_t workspace_size, uintptr_t stream)"""
ATTEND_BODY = """
{
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = (const void *)b;
  *(x ? &args.db : &args.c) = (void *)c;
  args.x = (const void *)x;
  args.values = (const void *)values;
  args.left = (const void *)left;
  args.right = (const void *)right;
  args.lse = (void *)lse;
  args.delta = (const void *)delta;
  args.dvalues = (void *)dvalues;
  args.dright = (void *)dright;
  args.slope = slope;
  args.ldt = ldt;
  args.dropout = dropout;
  args.seed = seed;
  args.workspace = (void *)workspace;
  args.workspace_size = workspace_size;
  args.stream = (void *)stream;
  if (call->plan) return wlm_plan_execute(call->plan, &args);
  return wlm_spmm(call->context, call->csr, call->problem, &args);
}
"""
RUN_BODY = """
{
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = (const void *)b;
  args.c = (void *)c;
  args.x = (const void *)x;
  args.values = (const void *)values;
  args.argmax = (void *)argmax;
  args.db = (void *)db;
  args.dvalues = (void *)dvalues;
  args.ldb = ldb;
  args.ldc = ldc;
  args.alpha = alpha;
  args.seed = seed;
  args.workspace = (void *)workspace;
  args.workspace_size = workspace_size;
  args.stream = (void *)stream;
  if (call->plan) return wlm_plan_execute(call->plan, &args);
  return wlm_spmm(call->context, call->csr, call->problem, &args);
}
"""


def declarations(compiler: str, include: str) -> str:
    """The declarations of the public headers, without those of the C library."""
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stddef.h", "stdint.h"):
            (Path(empty) / name).touch()
        command = [compiler, "-E", "-P", "-nostdinc", "-I", empty, "-I", include, "-x", "c", "-"]
        source = "#include <warploom/warploom_tune.h>\n"
        text = subprocess.run(
            command, input=source, check=True, capture_output=True, text=True
        ).stdout
    return re.sub(r"__attribute__\(\(.*?\)\)\)?", "", text)


def main(compiler: str, include: str, output: str) -> None:
    ffi = FFI()
    ffi.cdef(declarations(compiler, include) + CALLBACKS + CALL + RUN + ";" + ATTEND + ";")
    source = "#include <warploom/warploom_tune.h>\n" + CALL + "static " + RUN.strip() + RUN_BODY
    source += "static " + ATTEND.strip() + ATTEND_BODY
    ffi.set_source("warploom._native", source, py_limited_api=True)
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
