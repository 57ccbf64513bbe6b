/* Synthetic twins: their statistics against the published ones, and their bits against the hashes in
 * tests/unit/twins.tsv; the largest only if WARPLOOM_FULL is set. */
#include <omp.h>

#include "core/base/random.h"
#include "core/csr/stats.h"
#include "core/synth/degrees.h"
#include "core/synth/input.h"
#include "support/csr.h"
#include "support/test.h"
#include "support/tsv.h"

static void make(const char *input, wlmi_csr_host *csr, wlm_stats *s) {
  assert_status(WLM_OK, wlmi_input_read(input, csr));
  assert_csr(csr);
  assert_status(WLM_OK,
                wlmi_stats_compute(csr->rowptr, WLM_I64, csr->rows, csr->cols, csr->nnz, csr->colind, WLM_I32, s));
}

static void check_rows(const wlmi_csr_host *csr) {
  for (int64_t r = 0; r < csr->rows; r++)
    for (int64_t i = csr->rowptr[r]; i < csr->rowptr[r + 1]; i++) {
      if (i > csr->rowptr[r] && csr->colind[i - 1] >= csr->colind[i])
        fail_msg("row %lld is not ascending", (long long)r);
      float steps = csr->values[i] * 128.0f;
      if (steps < 64.0f || steps >= 192.0f || steps != floorf(steps)) fail_msg("value %g", (double)csr->values[i]);
    }
}

static void near(const char *input, const char *what, double got, double wanted, double tolerance) {
  if (!(fabs(got - wanted) <= tolerance * wanted)) fail_msg("%s: %s is %g, wanted %g", input, what, got, wanted);
}

static void check_pin(const tsv_table *pins, int i) {
  const char *input = tsv_text(pins, i, "input");
  double tolerance = tsv_double(pins, i, "tolerance");
  HELD(wlmi_csr_host) csr;
  wlm_stats s;
  wlmi_hash hash;
  char hex[WLMI_HASH_HEX];
  make(input, &csr, &s);
  check_rows(&csr);
  near(input, "rows", (double)s.rows, tsv_double(pins, i, "rows"), tolerance);
  near(input, "nnz", (double)s.nnz, tsv_double(pins, i, "nnz"), tolerance);
  near(input, "cv", s.cv, tsv_double(pins, i, "cv"), tolerance);
  if (strcmp(tsv_text(pins, i, "longest"), "-"))
    near(input, "longest", (double)s.longest, tsv_double(pins, i, "longest"), tolerance);
  hash = csr_hash(&csr);
  wlmi_hash_to_hex(hash, hex);
  if (strcmp(hex, tsv_text(pins, i, "xxh3"))) fail_msg("%s: xxh3 is %s, not the pinned one", input, hex);
}

static void pinned(const char *when) {
  tsv_table pins;
  int count = 0;
  assert_true(tsv_read(WLM_SOURCE_DIR "/tests/unit/twins.tsv", &pins));
  for (int i = 0; i < pins.rows; i++)
    if (!strcmp(tsv_text(&pins, i, "when"), when)) count++, check_pin(&pins, i);
  assert_true(count > 3);
  print_message("%d matrices\n", count);
  tsv_free(&pins);
}

TEST(small_twins_are_pinned) { pinned("always"); }

TEST(large_twins_are_pinned) {
  if (!getenv("WARPLOOM_FULL")) {
    print_message("only with WARPLOOM_FULL: twins of more than 5 million non-zeros\n");
    skip();
  }
  pinned("full");
}

TEST(any_number_of_threads_gives_the_same_bits) {
  wlmi_hash hash[3];
  int before = omp_get_max_threads();
  for (int i = 0; i < 3; i++) {
    omp_set_num_threads(1 + 2 * i);
    HOLD(wlmi_csr_host, csr, wlmi_input_read("twin:youtube,scale=0.03", &csr));
    hash[i] = csr_hash(&csr);
  }
  omp_set_num_threads(before);
  assert_memory_equal(&hash[0], &hash[1], sizeof *hash);
  assert_memory_equal(&hash[0], &hash[2], sizeof *hash);
}

/* Communities are contiguous, so each is a range of rows. */
TEST(edges_stay_in_communities) {
  static const struct {
    const char *input;
    double share;
  } cases[] = {{"twin:products,scale=0.02,numbering=contiguous,communities=10", 0.7},
               {"twin:products,scale=0.02,numbering=contiguous,communities=10,local=0.25", 0.25},
               {"twin:products,scale=0.02,numbering=contiguous,communities=1", 1.0},
               {"twin:products,scale=0.02,communities=10", 0.1}};
  for (int i = 0; i < 4; i++) {
    HELD(wlmi_csr_host) csr;
    wlm_stats s;
    int64_t inside = 0, communities = i == 2 ? 1 : 10;
    make(cases[i].input, &csr, &s);
    for (int64_t r = 0; r < csr.rows; r++)
      for (int64_t k = csr.rowptr[r]; k < csr.rowptr[r + 1]; k++)
        inside += r * communities / csr.rows == csr.colind[k] * communities / csr.cols;
    double share = (double)inside / (double)csr.nnz;
    if (fabs(share - cases[i].share) > 0.02) fail_msg("%s: %.3f of the edges inside", cases[i].input, share);
  }
}

/* A column is used in proportion to the length of the row with its number; summed over many rows, about that often. */
TEST(columns_follow_row_lengths) {
  HELD(wlmi_csr_host) csr;
  wlm_stats s;
  make("twin:web-google,scale=0.05", &csr, &s);
  FREED int64_t *hits = calloc((size_t)csr.cols, sizeof *hits);
  int64_t long_rows = 0, long_hits = 0, short_rows = 0, short_hits = 0;
  for (int64_t i = 0; i < csr.nnz; i++) hits[csr.colind[i]]++;
  for (int64_t r = 0; r < csr.rows; r++) {
    int64_t length = csr.rowptr[r + 1] - csr.rowptr[r];
    if (length > 20) long_rows += length, long_hits += hits[r];
    if (length > 0 && length < 4) short_rows += length, short_hits += hits[r];
  }
  near("twin:web-google", "hits of long rows", (double)long_hits, (double)long_rows, 0.1);
  near("twin:web-google", "hits of short rows", (double)short_hits, (double)short_rows, 0.1);
}

TEST(dense_rows_get_their_length) {
  HELD(wlmi_csr_host) csr;
  wlm_stats s;
  make("uniform:rows=50,d=40,cols=40", &csr, &s);
  check_rows(&csr);
  assert_int_equal(s.nnz, 2000);
  wlmi_csr_host_release(&csr);
  make("twin:reddit,scale=0.01", &csr, &s); /* the longest row of reddit has every column */
  check_rows(&csr);
  assert_int_equal(s.longest, csr.cols);
  wlmi_csr_host_release(&csr);
  make("uniform:rows=0,d=0", &csr, &s);
  assert_int_equal(csr.rows + csr.cols + csr.nnz, 0);
}

TEST(lengths_meet_their_moments) {
  wlmi_random random = wlmi_random_for(1, 0, 0);
  for (int round = 0; round < 30; round++) {
    int64_t rows = 500 + wlmi_random_below(&random, 40000), mean = 3 + wlmi_random_below(&random, 60);
    int64_t cv = 300000 + wlmi_random_below(&random, 2500000);
    wlmi_degrees_wanted wanted = {rows, mean * rows + 17, 30 * mean, cv, round % 2};
    FREED int32_t *degrees = malloc((size_t)rows * sizeof *degrees);
    double squares = 0, sum = 0;
    assert_status(WLM_OK, wlmi_degrees_make(&wanted, degrees));
    for (int64_t i = 0; i < rows; i++) {
      assert_in_range(degrees[i], wanted.least, wanted.longest);
      sum += degrees[i];
      squares += (double)degrees[i] * degrees[i];
    }
    assert_int_equal(degrees[0], wanted.longest);
    assert_true(sum == (double)wanted.nnz);
    double got = sqrt(squares / (double)rows - sum / (double)rows * (sum / (double)rows)) / (sum / (double)rows);
    near("lengths", "cv", got, (double)cv / 1e6, 0.03);
  }
  int32_t two[2];
  assert_status(WLM_OK, wlmi_degrees_make(&(wlmi_degrees_wanted){2, 7, 5, 0, 1}, two));
  assert_int_equal(two[0] + two[1], 7);
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_degrees_make(&(wlmi_degrees_wanted){2, 11, 5, 0, 1}, two));
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_degrees_make(&(wlmi_degrees_wanted){2, 5, 5, 0, 1}, two));
}

/* The mean and CV are as requested, over the stats that tuning covers; columns are distinct and in range. */
TEST(synths_have_the_asked_moments) {
  static const struct {
    const char *name;
    double mean, cv;
  } cases[] = {
      {"synth:rows=100,d=3,cv=2.5", 3, 2.5},
      {"synth:rows=1000,d=10,cv=0", 10, 0},
      {"synth:rows=1000,d=100,cv=0.6", 100, 0.6},
      {"synth:rows=50000,d=1.5,cv=30", 1.5, 30},
      {"synth:rows=10000,d=2.5,cv=8,cols=80000", 2.5, 8},
      {"synth:rows=20000,d=30,cv=4,cols=2500", 30, 4},
      {"synth:rows=20000,d=20,cv=2,communities=40,local=0.9", 20, 2},
      {"synth:rows=20000,d=20,cv=2,communities=40,local=0.9,numbering=scattered,seed=5", 20, 2},
      {"synth:rows=1000,d=0,cv=0", 0, 0},
      {"synth:rows=300,d=2,cv=1000", 2, -1}, /* as skewed as the size allows */
      {"synth:rows=1,d=5,cv=3,cols=10", 5, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HELD(wlmi_csr_host) csr, same;
    wlm_stats s, t;
    make(cases[i].name, &csr, &s);
    check_rows(&csr);
    assert_true(fabs(s.mean - cases[i].mean) <= 0.01 * cases[i].mean);
    if (cases[i].cv >= 0) near(cases[i].name, "cv", s.cv + 1, cases[i].cv + 1, 0.03);
    make(cases[i].name, &same, &t);
    assert_memory_equal(s.fingerprint, t.fingerprint, sizeof s.fingerprint);
  }
}

TEST(invalid_names) {
  static const char *const cases[][2] = {
      {"twin:redit", "no such twin"},
      {"twin:", "no such twin"},
      {"twin:reddit,", "''"},
      {"twin:arxiv,scale=2", "'scale=2'"},
      {"twin:arxiv,scale=0", "'scale=0'"},
      {"twin:arxiv,scale=-1", "'scale=-1'"},
      {"twin:arxiv,scale=0.5x", "'scale=0.5x'"},
      {"twin:arxiv,scale", "'scale'"},
      {"twin:arxiv,scale=0.0001", "17 rows"},
      {"twin:arxiv,rows=5", "'rows=5'"},
      {"twin:arxiv,local=1.5", "'local=1.5'"},
      {"twin:arxiv,communities=0", "'communities=0'"},
      {"twin:arxiv,numbering=odd", "'numbering=odd'"},
      {"twin:arxiv,seed=99999999999999999999", "'seed=99999999999999999999'"},
      {"uniform:", "''"},
      {"uniform:rows=5", "both be given"},
      {"uniform:rows=5,d=2,local=0.5", "'local=0.5'"},
      {"uniform:rows=-5,d=2", "'rows=-5'"},
      {"uniform:rows=5,d=6", "d=6 distinct columns of 5"},
      {"uniform:rows=5,d=2.5", "'d=2.5'"},
      {"synth:rows=5,d=2", "must be given"},
      {"synth:rows=0,d=2,cv=1", "must be given"},
      {"synth:rows=50,d=26,cv=1", "half of the 50 columns"},
      {"synth:rows=50,d=2,cv=1,longest=51", "not be above the 50 columns"},
      {"synth:rows=50,d=4,cv=1,longest=3", "50 rows of 0 to 3 entries cannot have 200 entries"},
      {"uniform:rows=5,d=2,longest=3", "'longest=3'"},
      {"synth:rows=1000000,d=3000,cv=1", "at most"},
      {"synth:rows=50,d=2,cv=1,scale=1", "'scale=1'"},
      {"synth:rows=50,d=2,cv=1,cols=60,communities=3", "square"},
      {"synth:rows=50,d=2,cv=-1", "'cv=-1'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_csr_host csr;
    if (wlmi_input_read(cases[i][0], &csr) != WLM_ERR_INVALID_ARGUMENT) fail_msg("%s was taken", cases[i][0]);
    assert_contains(wlm_error_detail(), cases[i][1]);
    assert_null(csr.rowptr);
  }
}
