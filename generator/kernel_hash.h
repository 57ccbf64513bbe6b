/* A hash of a program's kernels, by which measurements name what they measured. */
#pragma once

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/problem/program.h"

/* Appends the part of the source that the kernels of the passes consist of: all but comments, #line directives, white
 * space beyond one blank, and declarations that no kernel uses. It compiles to the same kernels. WLM_ERR_OUT_OF_MEMORY.
 */
wlm_status wlmi_kernel_text(const wlmi_program *program, wlmi_text *text);
/* The hash of this part and of the passes. WLM_ERR_OUT_OF_MEMORY. */
wlm_status wlmi_kernel_hash(const wlmi_program *program, char hex[WLM_HASH_HEX]);
