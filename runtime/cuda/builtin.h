/* The built-in kernels, which the library contains as PTX for machines without NVRTC. The build fills the table
 * (cmake/EmbedPtx.cmake); it is empty if the building machine had no NVRTC. */
#pragma once

#include "core/problem/program.h"

struct wlmi_cuda_builtin {
  const char *key;      /* of the problems it is for (wlmi_spec_key) */
  wlmi_program program; /* source NULL */
  const char *ptx;
};

extern const struct wlmi_cuda_builtin wlmi_cuda_builtins[];
extern const int wlmi_cuda_builtin_count;
