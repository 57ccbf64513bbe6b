/* The kernels that the GE-SpMM paper compares (section V-B), in its launch shapes. */
#pragma once

#include <stdint.h>

#include "core/problem/variant.h"

enum { WLM_PAPER_STEPS = 5 };

typedef struct wlmi_paper_step {
  const char *name;
  int cf; /* 0 = Algorithm 1 */
} wlmi_paper_step;

extern const wlmi_paper_step wlmi_paper_steps[WLM_PAPER_STEPS];

/* A block has as many threads as in the published code: 256 for N >= 64, 128 below. For row_crc, with one row per warp,
 * that is 8 or 4 rows per block; for row_naive as many rows of min(N, 32) columns as fill the block. */
void wlmi_paper_variant(const wlmi_paper_step *step, int64_t n, char name[WLM_VARIANT_NAME]);
