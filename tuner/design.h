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

/* What is known of it before it is made: its size, mean and CV. */
void wlm_design_stats(const wlm_design_matrix *matrix, wlm_stats *stats);

/* One tuning: a matrix at a width. */
typedef struct wlm_design_cell {
  int64_t matrix, n;
} wlm_design_cell;

/* All matrices at all widths that fit the limits; tuner/prospects.h says which is tuned when. */
wlm_status wlm_design_cells(const wlm_design_matrix *matrices, int64_t count, const int64_t *widths, int width_count,
                            const wlm_design_limits *limits, wlm_design_cell **cells, int64_t *cell_count);

#endif
