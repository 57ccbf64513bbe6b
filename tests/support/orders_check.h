/* Every operation with column-major B and C, each by itself, and with indices that count from 1: the bits that it gives
 * for row-major arrays and indices from 0. Arrays have exactly the needed size and NaN between their columns, where
 * nothing is written. */
#pragma once

#include "support/requests.h"

/* An array of `lines` x n elements in either order, the last column or row without padding. */
typedef struct dense {
  int64_t lines, n, ld;
  size_t size;
  int by_columns;
  char *memory;
} dense;

/* A copy of row-major elements without padding; `more` is the padding of its lines. */
dense dense_of(const void *from, int64_t lines, int64_t n, size_t size, wlm_order order, int64_t more);
/* Copies the elements back and releases the array, whose padding must be as it was. */
void dense_end(dense *d, void *to);

/* Runs all requests with these many columns by wlm_spmm and by plans. The context's device uses the host's memory. */
void orders_check(wlm_context *context, int64_t n, uint64_t seed);
