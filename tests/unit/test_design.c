/* The tuning design: what it covers, and that its matrices have the properties in their names. */
#include "core/csr/stats.h"
#include "core/problem/bucket.h"
#include "core/synth/input.h"
#include "support/test.h"
#include "tuner/design.h"

enum { FIRST = 64, WIDTHS = 6 };
static const int64_t widths[WIDTHS] = {4, 16, 32, 64, 128, 256};

static wlmi_design_matrix *make(uint64_t seed, int64_t memory, int64_t count, int64_t *made) {
  const wlmi_design_limits limits = wlmi_design_limits_of(memory);
  wlmi_design_matrix *matrices;
  assert_status(WLM_OK, wlmi_design_make(seed, &limits, count, &matrices, made));
  return matrices;
}

static const int64_t large = INT64_C(140) << 30, small = INT64_C(1) << 30;

TEST(same_seed_same_design) {
  int64_t a_count, b_count, c_count;
  WLM_FREED wlmi_design_matrix *a = make(1, large, FIRST, &a_count), *b = make(1, large, 2 * FIRST, &b_count),
                               *c = make(2, large, FIRST, &c_count);
  int differ = 0;
  assert_true(a_count == FIRST && b_count == 2 * FIRST && c_count == FIRST);
  for (int i = 0; i < FIRST; i++) {
    assert_string_equal(a[i].name, b[i].name); /* a longer design begins with the shorter one */
    differ += strcmp(a[i].name, c[i].name) != 0;
    for (int k = 0; k < i; k++) assert_string_not_equal(a[i].name, a[k].name);
  }
  assert_int_equal(differ, FIRST);
}

/* The distance of two matrices; each coordinate of the space has a length of about 1. */
static double distance(const wlmi_design_matrix *a, const wlmi_design_matrix *b) {
  const double rows = log10((double)a->rows / (double)b->rows) / 5, mean = log10(a->mean / b->mean) / 3;
  const double cv = (sqrt(a->cv) - sqrt(b->cv)) / sqrt(30);
  return sqrt(rows * rows + mean * mean + cv * cv);
}

/* The largest hole: over all matrices of the design, the largest distance to the nearest one of `first`. */
static double hole(const wlmi_design_matrix *all, int64_t count, const wlmi_design_matrix *first, int64_t first_count) {
  double worst = 0;
  for (int64_t i = 0; i < count; i++) {
    double nearest = INFINITY;
    for (int64_t k = 0; k < first_count; k++) nearest = fmin(nearest, distance(&all[i], &first[k]));
    worst = fmax(worst, nearest);
  }
  return worst;
}

TEST(the_space_is_covered) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    int64_t count;
    WLM_FREED wlmi_design_matrix *all = make(seed, large, INT64_MAX, &count);
    int decades[6] = {0}, means[4] = {0}, classes[5] = {0}, wide = 0, tall = 0, local = 0;
    int pairs[6][5] = {{0}}, possible[6][5] = {{0}};
    assert_in_range(count, 300, 1260);
    for (int64_t i = 0; i < count; i++) {
      const wlmi_design_matrix *m = &all[i];
      wlmi_bucket bucket;
      const wlm_stats stats = {.rows = m->rows, .nnz = m->rows, .mean = 1, .cv = m->cv};
      wlmi_bucket_of(&stats, &bucket);
      const int decade = (int)lround(log10((double)m->rows)) - 2, mean = (int)lround(log10(m->mean));
      assert_in_range(decade, 0, 5);
      assert_in_range(mean, 0, 3);
      assert_true(m->rows >= 100 && m->rows <= 10000000 && m->mean >= 1 && m->mean <= 1000 && m->cv <= 50);
      assert_true((double)m->rows * m->mean <= 2e8);
      possible[decade][bucket.cv_class]++;
      if (i >= FIRST) continue;
      decades[decade]++;
      means[mean]++;
      classes[bucket.cv_class]++;
      pairs[decade][bucket.cv_class]++;
      wide += m->cols > m->rows;
      tall += m->cols < m->rows;
      local += m->local;
    }
    for (int k = 0; k < 6; k++) assert_true(decades[k] >= 4);
    for (int k = 0; k < 4; k++) assert_true(means[k] >= 4);
    for (int k = 0; k < 5; k++) assert_true(classes[k] >= 6);
    if (wide < 8 || tall < 8 || local < 8) fail_msg("%d wide, %d tall, %d local", wide, tall, local);
    for (int d = 0; d < 6; d++)
      for (int c = 0; c < 5; c++)
        if (possible[d][c] && !pairs[d][c]) fail_msg("seed %d: decade %d with CV class %d is empty", (int)seed, d, c);
    assert_true(hole(all, count, all, FIRST) < 0.3);
    assert_true(hole(all, count, all, FIRST / 2) < 0.5);
    /* the first matrices cover the space better than the last ones */
    assert_true(hole(all, count, all + count - FIRST, FIRST) > hole(all, count, all, FIRST));
  }
}

TEST(matrices_match_their_names) {
  int64_t count;
  int looked = 0;
  WLM_FREED wlmi_design_matrix *matrices = make(3, large, 3 * FIRST, &count);
  for (int64_t i = 0; i < count; i++) {
    const wlmi_design_matrix *m = &matrices[i];
    wlm_stats stats;
    if ((double)m->rows * m->mean > 3e5) continue;
    HOLD(wlmi_csr_host, csr, wlmi_input_read(m->name, &csr));
    assert_status(WLM_OK,
                  wlmi_stats_compute(csr.rowptr, WLM_I64, csr.rows, csr.cols, csr.nnz, csr.colind, WLM_I32, &stats));
    assert_true(csr.rows == m->rows && csr.cols == m->cols);
    if (fabs(stats.mean - m->mean) > 0.02 * m->mean) fail_msg("%s: mean %g", m->name, stats.mean);
    const double part = m->mean - floor(m->mean); /* a mean of 1.3 cannot have rows of equal length */
    const double cv = fmax(m->cv, sqrt(part * (1 - part)) / m->mean);
    if (fabs(stats.cv - cv) > 0.1 * (cv + 0.2)) fail_msg("%s: cv %g", m->name, stats.cv);
    looked++;
  }
  assert_true(looked >= 30);
}

/* A small device gets a design without matrices that are too large for it. */
TEST(limits_are_kept) {
  const wlmi_design_limits limits = wlmi_design_limits_of(small);
  int64_t count, kept = 0;
  WLM_FREED wlmi_design_matrix *matrices = make(1, small, FIRST, &count);
  assert_int_equal(count, FIRST);
  for (int64_t i = 0; i < count * WIDTHS; i++) {
    const wlmi_design_matrix *m = &matrices[i / WIDTHS];
    const double dense = 4.0 * (double)widths[i % WIDTHS] * (double)(m->rows + m->cols);
    const int fits = 4 * (double)m->rows + 8 * (double)m->rows * m->mean + dense <= (double)small / 3;
    assert_int_equal(wlmi_design_fits(m, widths[i % WIDTHS], &limits), fits);
    kept += fits;
  }
  assert_true(kept < count * WIDTHS && 2 * kept > count * WIDTHS);
}
