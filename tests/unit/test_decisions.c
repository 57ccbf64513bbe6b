/* The cache of decisions and its cells: the centre of a cell lies in the cell; keys differ for different problems,
 * types and grades; the cache is bounded; decisions of an older snapshot are not kept. */
#include "core/base/memory.h"
#include "core/csr/stats.h"
#include "core/problem/cell.h"
#include "core/problem/spec_key.h"
#include "runtime/decisions.h"
#include "support/shapes.h"
#include "support/snapshot_fixture.h"
#include "support/stats.h"
#include "support/test.h"

/* ---- cells ------------------------------------------------------------------------------------------------- */

static int same_cell(const wlmi_cell *a, const wlmi_cell *b) { return !memcmp(a, b, sizeof *a); }

static void expect_centre_in_cell(const wlm_stats *stats) {
  for (int estimated = 0; estimated < 2; estimated++) {
    wlmi_cell cell, again;
    wlm_stats centre;
    wlmi_cell_of(stats, estimated, &cell);
    wlmi_cell_centre(&cell, &centre);
    wlmi_cell_of(&centre, estimated, &again);
    if (!same_cell(&cell, &again))
      fail_msg("rows %lld, cols %lld, nnz %lld, cv %g: the centre %lld, %lld, %lld, %g lies elsewhere",
               (long long)stats->rows, (long long)stats->cols, (long long)stats->nnz, stats->cv, (long long)centre.rows,
               (long long)centre.cols, (long long)centre.nnz, centre.cv);
    assert_false(wlmi_stats_has_fingerprint(&centre));
  }
}

static int64_t draw_count(test_random *random, double octaves) {
  return (int64_t)exp2(octaves * (double)test_draw(random, 1u << 20) / (1u << 20)) - 1;
}

TEST(centres_lie_in_their_cells) {
  test_random random = {1};
  for (int i = 0; i < 200000; i++) {
    const double octaves = i % 2 ? 40 : 8;
    wlm_stats s = WLM_STATS_INIT;
    s.rows = draw_count(&random, octaves);
    s.cols = draw_count(&random, octaves);
    s.nnz = s.rows ? draw_count(&random, octaves) : 0;
    s.longest = draw_count(&random, 20);
    s.cv = test_draw_between(&random, -1, 1) > 0 ? exp2(test_draw_between(&random, -6, 6)) : 0;
    s.top_share = test_draw_between(&random, 0, 1);
    s.empty_rows = (int64_t)test_draw(&random, (uint64_t)s.rows + 1);
    s.rows_le_4 = (int64_t)test_draw(&random, (uint64_t)s.rows + 1);
    s.rows_le_16 = (int64_t)test_draw(&random, (uint64_t)s.rows + 1);
    expect_centre_in_cell(&s);
  }
}

TEST(centres_of_real_matrices) {
  test_random random = {7};
  for (int shape = 0; shape < test_shape_count(); shape++) {
    HOLD(wlmi_csr_host, csr, test_shape_make(shape, 32, 500, &random, &csr));
    const wlm_stats stats = test_stats_of(&csr);
    expect_centre_in_cell(&stats);
  }
}

TEST(the_largest_sizes_have_cells) {
  wlm_stats s;
  wlmi_stats_estimate(INT64_MAX / 16, INT64_MAX, INT64_MAX / 16, &s);
  expect_centre_in_cell(&s);
}

/* ---- keys -------------------------------------------------------------------------------------------------- */

static int same_hash(wlmi_hash a, wlmi_hash b) { return a.low == b.low && a.high == b.high; }

TEST(problems_have_ids_of_their_own) {
  static const char *const texts[] = {"relu", "x*2", "relu"};
  enum { MOST = 32 };
  wlmi_hash ids[MOST];
  int count = 0;
  wlm_csr csr = CSR(.values = texts), other = WLM_CSR_INIT;
  const wlm_problem plain = WLM_PROBLEM_INIT;
#define ID(set)                                 \
  do {                                          \
    wlm_problem p = plain;                      \
    other = csr;                                \
    set;                                        \
    ids[count++] = wlmi_problem_id(&p, &other); \
  } while (0)
  ID((void)0);
  ID(p.n = 1);
  ID(p.heads = 2);
  ID(p.sampling.width = 1);
  ID(p.sampling.sample = WLM_SAMPLE_BUCKET);
  ID(p.policy.expected_calls = 2);
  ID(p.policy.deterministic = 1);
  ID(p.custom = texts[0]);
  ID(p.epilogue.activation = texts[0]);
  ID(p.epilogue.activation = texts[1]);
  ID(p.epilogue.bias = 1);
  ID(p.operation = WLM_SDDMM);
  ID(p.message = WLM_ADD);
  ID(p.reduce = WLM_MAX);
  ID(p.empty = WLM_EMPTY_IDENTITY);
  ID(p.dense_type = WLM_F16);
  ID(p.transpose = 1);
  ID(p.want_argmax = 1);
  ID(p.argmax_type = WLM_I64);
  ID(other.rowptr_type = WLM_I64);
  ID(other.colind_type = WLM_I64);
  ID(other.value_type = WLM_F64);
  ID(other.values = NULL);
#undef ID
  for (int i = 0; i < count; i++)
    for (int k = 0; k < i; k++) assert_false(same_hash(ids[i], ids[k]));
  /* Texts are compared by their contents, and flags as true or false. Arrays are not part of the id. */
  wlm_problem one = plain, two = plain;
  one.epilogue.activation = texts[0];
  two.epilogue.activation = (const char[]){"relu"};
  one.transpose = 1;
  two.transpose = 2;
  other = csr;
  other.values = &other;
  other.rowptr = other.colind = &other;
  other.rows = 5;
  assert_true(same_hash(wlmi_problem_id(&one, &csr), wlmi_problem_id(&two, &other)));
}

TEST(keys_depend_on_use) {
  const wlmi_hash id = {1, 2};
  enum { USES = WLMI_USE_SCATTER + 1 };
  wlmi_hash keys[2 * USES];
  wlm_stats s, near;
  wlmi_stats_estimate(1000, 1000, 9000, &s);
  wlmi_stats_estimate(1001, 1000, 9001, &near);
  s.fingerprint[0] = 3;
  near.fingerprint[0] = 4;
  for (int i = 0; i < 2 * USES; i++) {
    const wlmi_use use = (wlmi_use)(i / 2);
    const int exact = i % 2;
    keys[i] = wlmi_decision_key(&id, &s, use, exact);
    const wlmi_hash other = wlmi_decision_key(&id, &near, use, exact);
    assert_int_equal(same_hash(keys[i], other), !exact);
    for (int k = 0; k < i; k++) assert_false(same_hash(keys[i], keys[k]));
  }
}

/* ---- the cache --------------------------------------------------------------------------------------------- */

static wlm_stats some_stats(void) {
  wlm_stats stats;
  wlmi_stats_estimate(100, 100, 900, &stats);
  return stats;
}

/* Makes problems that differ by a number. */
static wlmi_hash key_of(uint64_t problem) {
  const wlm_stats stats = some_stats();
  return wlmi_decision_key(&(wlmi_hash){.low = problem, .high = 5}, &stats, WLMI_USE_MEASURED, 0);
}

static wlmi_decided *take(wlmi_decisions *d, uint64_t problem) {
  wlm_stats stats = some_stats();
  wlmi_decision_slot place;
  const wlmi_hash id = {.low = problem, .high = 5}, key = key_of(problem);
  wlmi_decided *found = wlmi_decisions_take(d, &id, 32, WLMI_USE_MEASURED, &stats, &place);
  assert_false(place.exact);
  assert_true(same_hash(place.key, key));
  return found;
}

static wlmi_decided *decided_of(uint64_t problem) {
  wlmi_decided *decided = wlmi_alloc_zero(1, sizeof *decided);
  assert_non_null(decided);
  atomic_init(&decided->users, 1);
  decided->key = key_of(problem);
  return decided;
}

static void add(wlmi_decisions *d, uint64_t low, uint64_t generation) {
  OWNED(wlmi_decided) *decided = decided_of(low);
  wlmi_decisions_add(d, decided, generation);
}

static int has(wlmi_decisions *d, uint64_t low) {
  wlmi_decided *found = take(d, low);
  wlmi_decided_drop(found);
  return found != NULL;
}

static wlmi_decisions *decisions_make(void) {
  wlmi_decisions *d = wlmi_alloc_zero(1, sizeof *d);
  assert_non_null(d);
  wlmi_decisions_open(d);
  return d;
}

static void decisions_release(wlmi_decisions *d) {
  wlmi_decisions_close(d);
  wlmi_free(d);
}

TEST(the_cache_is_bounded) {
  wlmi_decisions *d = decisions_make();
  for (uint64_t i = 0; i < WLMI_DECISIONS_MOST; i++) add(d, i, 0);
  assert_int_equal(d->count, WLMI_DECISIONS_MOST);
  wlmi_decided *held = take(d, 17);
  add(d, 17, 0); /* already there: nothing changes */
  assert_int_equal(d->count, WLMI_DECISIONS_MOST);
  add(d, WLMI_DECISIONS_MOST, 0);
  assert_true(d->count >= 1 && d->count <= WLMI_DECISIONS_MOST);
  assert_true(has(d, WLMI_DECISIONS_MOST));
  assert_true(same_hash(held->key, key_of(17))); /* the holder's reference stays valid */
  wlmi_decided_drop(held);
  decisions_release(d);
}

TEST(another_snapshot_clears_it) {
  wlmi_decisions *d = decisions_make();
  GET(wlmi_snapshot *, snapshot, wlmi_snapshot_create(&snapshot));
  add(d, 1, 0);
  snapshot->generation = 3;
  wlmi_decisions_restart(d, snapshot);
  assert_false(has(d, 1));
  add(d, 1, 0); /* a decision from the old snapshot that arrives late */
  assert_false(has(d, 1));
  add(d, 1, 3);
  assert_true(has(d, 1));
  wlmi_snapshot_release(snapshot);
  decisions_release(d);
}

TEST(decisions_are_replaced) {
  wlmi_decisions *d = decisions_make();
  uint64_t problems[4], problem = 0;
  for (int i = 0; i < 4; problem++) /* four problems whose keys share a slot */
    if (!i || key_of(problem).low % WLMI_DECISION_SLOTS == key_of(problems[0]).low % WLMI_DECISION_SLOTS)
      problems[i++] = problem;
  for (int i = 0; i < 3; i++) add(d, problems[i], 0);
  for (int i = 0; i < 4; i++) { /* the last one is not yet in the cache */
    wlmi_decided *better = decided_of(problems[i]);
    wlmi_decisions_replace(d, better, 1); /* of another snapshot, so it is ignored */
    wlmi_decided *found = take(d, problems[i]);
    assert_true(found != better);
    wlmi_decided_drop(found);
    wlmi_decisions_replace(d, better, 0);
    found = take(d, problems[i]);
    assert_ptr_equal(found, better);
    wlmi_decided_drop(found);
    wlmi_decided_drop(better);
    assert_int_equal(d->count, i < 3 ? 3 : 4);
  }
  for (int i = 0; i < 4; i++) assert_true(has(d, problems[i]));
  decisions_release(d);
}

TEST(sizes_of_tuned_matrices_are_known) {
  wlmi_decisions *d = decisions_make();
  enum { CASES = 100 };
  GET(wlmi_snapshot *, snapshot, wlmi_snapshot_create(&snapshot));
  assert_false(wlmi_decisions_know_size(d, 5, 5, 5));
  for (int i = 0; i < CASES; i++) {
    wlm_stats s;
    wlmi_stats_estimate(100 + i, 50, 1000, &s);
    s.fingerprint[0] = (uint64_t)i + 1;
    s.fingerprint[1] = 77;
    snapshot_case(snapshot, &s, "a problem", 16 << i % 3);
  }
  wlmi_decisions_restart(d, snapshot);
  for (int i = 0; i < CASES; i++) {
    const int64_t n = 16 << i % 3;
    const wlmi_hash id = {1, 2};
    wlmi_decision_slot place;
    wlm_stats s;
    assert_true(wlmi_decisions_know_size(d, 100 + i, 1000, n));
    assert_false(wlmi_decisions_know_size(d, 100 + i, 1000, 15));
    assert_false(wlmi_decisions_know_size(d, 100 + i, 1001, n));
    /* wlm_spmm assumes that a matrix of this size is the tuned one; a plan compares the fingerprint. */
    wlmi_stats_estimate(100 + i, 50, 1000, &s);
    assert_null(wlmi_decisions_take(d, &id, n, WLMI_USE_MEASURED, &s, &place));
    assert_true(!place.exact && !s.fingerprint[0]);
    assert_null(wlmi_decisions_take(d, &id, n, WLMI_USE_ONE_CALL, &s, &place));
    assert_true(place.exact && s.fingerprint[0] == (uint64_t)i + 1 && s.fingerprint[1] == 77);
  }
  assert_false(wlmi_decisions_know_size(d, 100, 1000, 0));
  /* a pin may be for any matrix, so each is decided by its fingerprint */
  assert_status(WLM_OK, wlmi_snapshot_add_pin(snapshot, &(wlmi_pin){.problem = "p", .n = 3, .variant = "x"}));
  wlmi_decisions_restart(d, snapshot);
  assert_true(wlmi_decisions_know_size(d, 5, 5, 5));
  wlmi_snapshot_release(snapshot);
  decisions_release(d);
}
