/* A plain OpenMP loop, the baseline of the host device: C = A * B, or A^T * B, in f32 with 32-bit columns; B and C are
 * row-major without gaps. */
#pragma once

#include "core/base/status.h"

typedef struct wlmi_openmp_loop wlmi_openmp_loop;

/* Compiles the loops for matrices of one rowptr type. */
wlm_status wlmi_openmp_loop_create(wlm_index rowptr_type, wlmi_openmp_loop **loop);
void wlmi_openmp_loop_destroy(wlmi_openmp_loop *loop); /* also of NULL */

/* `a` has values and the rowptr type that the loop was compiled for. */
void wlmi_openmp_loop_run(const wlmi_openmp_loop *loop, const wlm_csr *a, int transpose, int64_t n, const float *b,
                          float *c);
