/* Which synthetic matrices a device is tuned on. */
#ifndef WLM_TUNER_DESIGN_H
#define WLM_TUNER_DESIGN_H

#include <stdint.h>

#include "common/status.h"

/* What the device can take. */
typedef struct wlm_design_limits {
  int64_t nnz;   /* of a matrix */
  int64_t bytes; /* of its arrays, and of B and C at the width in question */
} wlm_design_limits;
wlm_design_limits wlm_design_limits_of(int64_t memory_bytes); /* 2 x 10^8, and a third of the memory */

typedef struct wlm_design_matrix {
  char name[224]; /* as wlm_input_read takes it */
  int64_t rows, cols;
  double mean, cv;
  int local; /* columns near the diagonal */
} wlm_design_matrix;

/* `count` matrices or fewer; the first so many of a longer design are the same. Released with wlm_free. */
wlm_status wlm_design_make(uint64_t seed, const wlm_design_limits *limits, int64_t count, wlm_design_matrix **matrices,
                           int64_t *made);

/* One tuning: a matrix at a width. */
typedef struct wlm_design_cell {
  int64_t matrix, n;
  int sweep;
} wlm_design_cell;

/* All matrices at all widths that fit the limits, in the order in which they are tuned: a budget that ends in the
 * middle leaves every part of the design measured at some width. Cells of one matrix in one sweep follow each other. */
wlm_status wlm_design_order(const wlm_design_matrix *matrices, int64_t count, const int64_t *widths, int width_count,
                            const wlm_design_limits *limits, wlm_design_cell **cells, int64_t *cell_count);

#endif
