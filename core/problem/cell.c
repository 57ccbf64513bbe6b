#include "core/problem/cell.h"

#include <math.h>

enum { EXACT = 16, OCTAVE = 4, NNZ_OCTAVE = 8, TOP_STEPS = 16, SHARE_STEPS = 8 };

/* Counts up to EXACT are kept as they are; larger ones are rounded to the nearest step of an octave. */
static int16_t of_count(int64_t count, int steps) {
  return (int16_t)(count <= EXACT ? count : EXACT + lround(steps * log2((double)count / EXACT)));
}

static int64_t to_count(int16_t code, int steps) {
  const double count = EXACT * exp2((double)(code - EXACT) / steps);
  if (code <= EXACT) return code;
  return count < 0x1p63 ? llround(count) : INT64_MAX;
}

static int16_t of_real(double value) { return value > 0 ? (int16_t)lround(OCTAVE * log2(value)) : INT16_MIN; }

static double to_real(int16_t code) { return code == INT16_MIN ? 0 : exp2((double)code / OCTAVE); }

static int16_t of_share(int64_t part, int64_t whole, int steps) {
  return (int16_t)(whole ? lround((double)steps * (double)part / (double)whole) : 0);
}

static int64_t to_part(int16_t code, int64_t whole, int steps) { return llround((double)whole * code / steps); }

/* A CV below 1/16 makes no difference to any kernel. */
static const double least_cv = 1.0 / 16;

void wlmi_cell_of(const wlm_stats *s, int estimated, wlmi_cell *cell) {
  *cell = (wlmi_cell){.estimated = estimated != 0,
                      .rows = of_count(s->rows, OCTAVE),
                      .cols = of_count(s->cols, OCTAVE),
                      .nnz = of_count(s->nnz, NNZ_OCTAVE)};
  if (estimated) return;
  cell->cv = s->cv >= least_cv ? of_real(s->cv) : INT16_MIN;
  cell->longest = of_count(s->longest, OCTAVE);
  cell->top_share = (int16_t)lround(TOP_STEPS * s->top_share);
  cell->empty = of_share(s->empty_rows, s->rows, SHARE_STEPS);
  cell->le_4 = of_share(s->rows_le_4, s->rows, SHARE_STEPS);
  cell->le_16 = of_share(s->rows_le_16, s->rows, SHARE_STEPS);
}

void wlmi_stats_estimate(int64_t rows, int64_t cols, int64_t nnz, wlm_stats *stats) {
  const int64_t longest = rows ? nnz / rows + (nnz % rows != 0) : 0;
  *stats = (wlm_stats){.size = sizeof *stats,
                       .rows = rows,
                       .cols = cols,
                       .nnz = nnz,
                       .longest = longest,
                       .empty_rows = nnz < rows ? rows - nnz : 0,
                       .rows_le_4 = longest <= 4 ? rows : 0,
                       .rows_le_16 = longest <= 16 ? rows : 0,
                       .mean = rows ? (double)nnz / (double)rows : 0};
  const int64_t top = (rows + 99) / 100;
  if (nnz) stats->top_share = fmin(1, (double)top * (double)longest / (double)nnz);
}

void wlmi_cell_centre(const wlmi_cell *cell, wlm_stats *stats) {
  const int64_t rows = to_count(cell->rows, OCTAVE);
  wlmi_stats_estimate(rows, to_count(cell->cols, OCTAVE), to_count(cell->nnz, NNZ_OCTAVE), stats);
  if (cell->estimated) return;
  stats->cv = to_real(cell->cv);
  stats->longest = to_count(cell->longest, OCTAVE);
  stats->top_share = (double)cell->top_share / TOP_STEPS;
  stats->empty_rows = to_part(cell->empty, rows, SHARE_STEPS);
  stats->rows_le_4 = to_part(cell->le_4, rows, SHARE_STEPS);
  stats->rows_le_16 = to_part(cell->le_16, rows, SHARE_STEPS);
}

void wlmi_cell_centre_of(const wlm_stats *stats, int estimated, wlm_stats *centre) {
  wlmi_cell cell;
  wlmi_cell_of(stats, estimated, &cell);
  wlmi_cell_centre(&cell, centre);
}
