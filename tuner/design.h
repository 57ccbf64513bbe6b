/* The design: the synthetic matrices on which a device is tuned. */
#pragma once

#include <stdint.h>

#include "core/base/status.h"

/* The largest matrix for the device. */
typedef struct wlmi_design_limits {
  int64_t nnz;   /* of a matrix */
  int64_t bytes; /* bytes of its arrays and of B and C */
} wlmi_design_limits;
wlmi_design_limits wlmi_design_limits_of(int64_t memory_bytes); /* 2 x 10^8, and a third of the memory */

typedef struct wlmi_design_matrix {
  char name[224]; /* an input for wlmi_input_read */
  int64_t rows, cols;
  double mean, cv;
  int local; /* 1 = columns near the diagonal */
} wlmi_design_matrix;

/* At most `count` matrices; a longer design begins with the same ones. Released with wlmi_free. */
wlm_status wlmi_design_make(uint64_t seed, const wlmi_design_limits *limits, int64_t count,
                            wlmi_design_matrix **matrices, int64_t *made);

/* The stats that are known before the matrix is made: size, mean and CV. */
void wlmi_design_stats(const wlmi_design_matrix *matrix, wlm_stats *stats);

/* Whether the matrix and its B and C of n columns fit the limits. */
int wlmi_design_fits(const wlmi_design_matrix *matrix, int64_t n, const wlmi_design_limits *limits);
