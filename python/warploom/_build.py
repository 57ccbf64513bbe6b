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
    ffi.cdef(declarations(compiler, include) + CALLBACKS)
    ffi.set_source("warploom._native", "#include <warploom/warploom_tune.h>", py_limited_api=True)
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
