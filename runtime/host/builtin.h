/* The built-in kernel of the host, which needs no compiler: C = alpha * A * B + beta * C in f32. */
#pragma once

#include "core/problem/program.h"

/* Fills the program's one pass and its kernel; WLM_ERR_NO_COMPILER for any problem but an unsampled f32 sum of
 * products. */
wlm_status wlmi_host_builtin(const wlmi_spec *spec, wlmi_program *program, void **kernel);
