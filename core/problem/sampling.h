/* Which edges of a row a sampled problem uses. One definition for the reference, the host kernels and, spelled
 * in the operator block, for the CUDA kernels:
 *
 *   d      = the row's degree, S = problem.sampling.width
 *   kept   = min(S, d)
 *   d <= S : every edge in order, p = k, whatever the strategy and the seed
 *   d >  S : p = (k * stride + shift) mod d for k = 0 .. kept - 1, relative to the row's start
 *   stride = 1 (bucket), 577 (fastrand), the least number >= 577 that is coprime with d (fastrand_coprime)
 *   shift  = 0 where seed = 0, else hash(seed, row) mod d
 *   hash(seed, row): x = seed ^ (row * 0x9E3779B97F4A7C15), then the finaliser of splitmix64:
 *            x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9; x = (x ^ x >> 27) * 0x94D049BB133111EB; x ^ x >> 31
 *            all in 64 bits without sign, row being the row's number in the matrix
 *
 * 577 is a prime, so fastrand as published repeats edges if and only if 577 divides d. */
#pragma once

#include "core/base/status.h"

enum { WLMI_FASTRAND_STRIDE = 577 };

uint64_t wlmi_sample_hash(uint64_t seed, int64_t row);
int64_t wlmi_sample_kept(wlm_sample strategy, int64_t degree, int64_t width); /* degree where nothing is sampled */

/* The sample of one row. */
typedef struct wlmi_row_sample {
  int64_t degree, kept, stride, shift; /* kept = degree where nothing is sampled */
} wlmi_row_sample;
wlmi_row_sample wlmi_row_sample_of(const wlm_sampling *sampling, uint64_t seed, int64_t row, int64_t degree);
/* Of edge k of kept, relative to the row's start. */
int64_t wlmi_sample_position(const wlmi_row_sample *sample, int64_t k);

/* What dropout multiplies number `at` of the edges' heads by: 0 for a share `dropout` of them, 1 / (1 - dropout) for
 * the others. at = heads times the edge's position in A + head. */
double wlmi_dropout_factor(double dropout, uint64_t seed, int64_t at);
