/* The one rule for sizes: rows, columns and non-zeros of a matrix, counts of its rows, and the columns of B, whether
 * they come from a call, a file or a database. */
#pragma once

#include <stdint.h>

/* 2^59 - 1. More does not fit in memory. Up to here the bytes of an array, and sums and small multiples of sizes, are
 * within 64 bits. */
#define WLMI_MOST_SIZE      (INT64_MAX / 16)
#define WLMI_MOST_SIZE_TEXT "576460752303423487"

static inline int wlmi_is_size(int64_t size) { return size >= 0 && size <= WLMI_MOST_SIZE; }
