/* The design space has an axis for each property that decides between kernels: rows, non-zeros per row, their CV, the
 * ratio of columns to rows, and whether neighbouring rows share columns. Its grid, without impossible points (a CV that
 * the rows or columns do not allow, a matrix that does not fit), has a few hundred points, too many to measure.
 *
 * Points are chosen one after another, each as far as possible from all chosen before. So the first points of the order
 * always cover the space evenly, and each further one fills the largest hole. There a measurement improves choices
 * most, because the model's error grows with the distance to measured matrices. Each point is then shifted a little by
 * the seed, so that rows are no round numbers and another seed gives another design. */
#include "tuner/design.h"

#include <math.h>
#include <stdio.h>

#include "core/base/memory.h"
#include "core/base/random.h"

enum { STREAM_SHIFT = 21, STREAM_ORDER = 22 };
static const double max_cols = 2e7;
static const int64_t max_nnz = 200000000;

static const double rows_levels[] = {1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
static const double mean_levels[] = {1, 3, 10, 30, 100, 300, 1000};
static const double cv_levels[] = {0, 0.8, 2.5, 8, 40};
static const double cols_levels[] = {1, 8, 0.125}; /* times the rows */
#define COUNT(levels) (int)(sizeof(levels) / sizeof *(levels))
enum { LOCAL = 2 };

/* A point of the grid: an index into the levels of each axis. */
typedef struct point {
  int rows, mean, cv, cols, local;
  double distance; /* to the nearest chosen point */
} point;

wlmi_design_limits wlmi_design_limits_of(int64_t memory_bytes) {
  return (wlmi_design_limits){max_nnz, memory_bytes / 3};
}

static double matrix_bytes(double rows, double nnz) { return 4 * rows + 8 * nnz; }

/* The matrix needs twice as many columns as the longest row that the CV requires, and enough rows for that CV. */
static int is_possible(const point *p, const wlmi_design_limits *limits) {
  const double rows = rows_levels[p->rows], mean = mean_levels[p->mean], cv = cv_levels[p->cv];
  const double cols = rows * cols_levels[p->cols], nnz = rows * mean;
  if (p->local && (p->cols || p->rows < 2)) return 0;
  if (nnz > (double)limits->nnz || matrix_bytes(rows, nnz) > (double)limits->bytes || cols > max_cols) return 0;
  return 4 * mean <= cols && cols >= 2 * mean * (1 + cv * cv) && cv <= sqrt(rows / 12);
}

static double square(double x) { return x * x; }

/* Each axis has length 1; shape and locality count less than one level of the others. */
static double distance(const point *a, const point *b) {
  return sqrt(square((double)(a->rows - b->rows) / (COUNT(rows_levels) - 1)) +
              square((double)(a->mean - b->mean) / (COUNT(mean_levels) - 1)) +
              square((double)(a->cv - b->cv) / (COUNT(cv_levels) - 1)) + square(0.15 * (a->cols != b->cols)) +
              square(0.15 * (a->local != b->local)));
}

static int64_t make_grid(const wlmi_design_limits *limits, point *points) {
  int64_t count = 0;
  for (int rows = 0; rows < COUNT(rows_levels); rows++)
    for (int mean = 0; mean < COUNT(mean_levels); mean++)
      for (int cv = 0; cv < COUNT(cv_levels); cv++)
        for (int cols = 0; cols < COUNT(cols_levels); cols++)
          for (int local = 0; local < LOCAL; local++) {
            const point p = {rows, mean, cv, cols, local, INFINITY};
            if (is_possible(&p, limits)) points[count++] = p;
          }
  return count;
}

static void shuffle(point *points, int64_t count, uint64_t seed) {
  wlmi_random random = wlmi_random_for(seed, STREAM_ORDER, 0);
  for (int64_t i = count - 1; i > 0; i--) {
    const int64_t other = wlmi_random_below(&random, i + 1);
    const point moved = points[i];
    points[i] = points[other];
    points[other] = moved;
  }
}

/* A factor between 1 / range and range. */
static double shift(wlmi_random *random, double range) {
  return pow(range, 2 * ((double)(wlmi_random_next(random) >> 11) * 0x1p-53) - 1);
}

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* Rounds to two digits behind the point, as in the matrix's name. */
static int64_t hundredths(double x) { return (int64_t)(100 * x + 0.5); }

static void describe(const point *p, uint64_t seed, wlmi_design_matrix *out) {
  wlmi_random random = wlmi_random_for(
      seed, STREAM_SHIFT, (uint64_t)((((p->rows * 16 + p->mean) * 16 + p->cv) * 4 + p->cols) * 2 + p->local));
  const int64_t rows = (int64_t)clamp(rows_levels[p->rows] * shift(&random, 1.5), 100, 1e7);
  const int64_t mean = hundredths(clamp(mean_levels[p->mean] * shift(&random, 1.25), 1, 1000));
  const int64_t cv = hundredths(cv_levels[p->cv] * shift(&random, 1.25));
  const int64_t cols = p->cols ? (int64_t)((double)rows * cols_levels[p->cols]) : rows;
  char local[48] = "";
  if (p->local) snprintf(local, sizeof local, ",communities=%lld,local=0.9", (long long)(rows / 512 + 1));
  *out = (wlmi_design_matrix){
      .rows = rows, .cols = cols, .mean = (double)mean / 100, .cv = (double)cv / 100, .local = p->local};
  snprintf(out->name, sizeof out->name, "synth:rows=%lld,cols=%lld,d=%lld.%02lld,cv=%lld.%02lld%s,seed=%llu",
           (long long)rows, (long long)cols, (long long)(mean / 100), (long long)(mean % 100), (long long)(cv / 100),
           (long long)(cv % 100), local, (unsigned long long)(seed & INT64_MAX));
}

wlm_status wlmi_design_make(uint64_t seed, const wlmi_design_limits *limits, int64_t count,
                            wlmi_design_matrix **matrices, int64_t *made) {
  enum { MOST = 6 * 7 * 5 * 3 * LOCAL };
  /* A matrix must still fit after it is shifted to more rows and a larger mean. */
  const wlmi_design_limits room = {limits->nnz / 2, limits->bytes / 2};
  wlm_status status;
  point *points = NULL;
  *matrices = NULL;
  *made = 0;
  WLM_TRY(wlmi_alloc_array(MOST, sizeof *points, "points of the design", (void **)&points));
  const int64_t possible = make_grid(&room, points);
  if (count > possible) count = possible;
  WLM_TRY(wlmi_alloc_array(count, sizeof **matrices, "matrices of the design", (void **)matrices));
  shuffle(points, possible, seed); /* so that ties of equally far points are decided by the seed */
  int64_t next = 0;
  while (*made < count) {
    const point taken = points[next];
    describe(&taken, seed, &(*matrices)[(*made)++]);
    for (int64_t i = next = 0; i < possible; i++) {
      points[i].distance = fmin(points[i].distance, distance(&points[i], &taken));
      if (points[i].distance > points[next].distance) next = i;
    }
  }
done:
  wlmi_free(points);
  return status;
}

void wlmi_design_stats(const wlmi_design_matrix *m, wlm_stats *stats) {
  const wlm_stats none = WLM_STATS_INIT;
  *stats = none;
  stats->rows = m->rows;
  stats->cols = m->cols;
  stats->nnz = (int64_t)((double)m->rows * m->mean);
  stats->mean = m->mean;
  stats->cv = m->cv;
}

int wlmi_design_fits(const wlmi_design_matrix *m, int64_t n, const wlmi_design_limits *limits) {
  const double rows = (double)m->rows, dense = 4 * (double)n * (double)(m->rows + m->cols);
  return matrix_bytes(rows, rows * m->mean) + dense <= (double)limits->bytes;
}
