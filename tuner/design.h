/* Which synthetic matrices a device is tuned on. */
#ifndef WLM_TUNER_DESIGN_H
#define WLM_TUNER_DESIGN_H

#include <stdint.h>

#include "common/status.h"

/* What the device can take. */
typedef struct wlmi_design_limits {
  int64_t nnz;   /* of a matrix */
  int64_t bytes; /* of its arrays, and of B and C at the width in question */
} wlmi_design_limits;
wlmi_design_limits wlmi_design_limits_of(int64_t memory_bytes); /* 2 x 10^8, and a third of the memory */

typedef struct wlmi_design_matrix {
  char name[224]; /* as wlmi_input_read takes it */
  int64_t rows, cols;
  double mean, cv;
  int local; /* columns near the diagonal */
} wlmi_design_matrix;

/* `count` matrices or fewer; the first so many of a longer design are the same. Released with wlmi_free. */
wlm_status wlmi_design_make(uint64_t seed, const wlmi_design_limits *limits, int64_t count,
                            wlmi_design_matrix **matrices, int64_t *made);

/* What is known of it before it is made: its size, mean and CV. */
void wlmi_design_stats(const wlmi_design_matrix *matrix, wlm_stats *stats);

/* One tuning: a matrix at a width. */
typedef struct wlmi_design_cell {
  int64_t matrix, n;
} wlmi_design_cell;

/* All matrices at all widths that fit the limits; tuner/tuning_case.h says which is tuned when. */
wlm_status wlmi_design_cells(const wlmi_design_matrix *matrices, int64_t count, const int64_t *widths, int width_count,
                             const wlmi_design_limits *limits, wlmi_design_cell **cells, int64_t *cell_count);

#endif
