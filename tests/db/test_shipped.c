/* The shipped database share/warploom/system.db: small, undamaged, and with good decisions for its devices and the
 * present kernels. */
#include <sys/stat.h>

#include "core/problem/spec_key.h"
#include "db/store.h"
#include "select/classes.h"
#include "select/model.h"
#include "support/emit_fixture.h"
#include "support/shipped.h"
#include "support/test.h"

static const char path[] = WLM_SOURCE_DIR "/share/warploom/system.db";
static const char device[] = "cuda/sm_90/NVIDIA H200/132", h100[] = "cuda/sm_90/NVIDIA H100 80GB HBM3/132";
static const wlmi_limits limits = {
    .target = WLMI_TARGET_CUDA, .arch = 90, .threads_per_block = 1024, .shared_bytes = 232448, .processors = 132};

static wlm_store *open_store(void) {
  GET(wlm_store *, store, wlmi_store_open(path, WLMI_STORE_READ, &store));
  return store;
}

TEST(is_small_and_undamaged) {
  struct stat file;
  HELD(wlmi_text) faults = {0};
  assert_int_equal(stat(path, &file), 0);
  assert_true(file.st_size <= 6000000);
  OWNED(wlm_store) *store = open_store();
  assert_status(WLM_OK, wlmi_store_check(store, &faults));
}

/* The winner of every case is a candidate in this version. (Slower measured variants need not be.) */
static void choices_are_candidates(const char *of, int64_t least) {
  wlmi_measurement_record *records;
  OWNED(wlm_store) *store = open_store();
  GET(int64_t, count, wlmi_store_load(store, of, &records, &count));
  HOLD(wlmi_cases, choices, wlmi_cases_make(records, count, &choices));
  assert_true(choices.count >= least);
  for (int64_t i = 0; i < choices.count; i++) {
    const wlmi_case *c = &choices.list[i];
    HELD(wlmi_text) reason = {0};
    assert_true(c->count > 0);
    GET(wlmi_spec, spec, wlmi_spec_from_key(c->problem, c->n, &spec));
    assert_status(WLM_OK, wlmi_generator_refusal(emit_generator, c->candidates[0].variant, &spec, &limits, &reason));
    if (reason.size) fail_msg("%s, n = %lld: %s %s", c->matrix, (long long)c->n, c->candidates[0].variant, reason.data);
  }
  wlmi_measurements_free(records, count);
}

TEST(its_choices_are_candidates) {
  choices_are_candidates(device, 1500);
  choices_are_candidates(h100, 690);
}

/* Of how many measurements a model was trained at least; the first part that its name has counts. */
static int64_t least_measurements(const char *of, const char *name) {
  static const struct {
    const char *part;
    int64_t least;
  } kinds[] = {{",transpose=1", 5000},
               {"operation=sddmm", 5000},
               {"operation=attention", 25000},
               {"operation=message", 45000},
               {"arg=i32", 60000},
               {"dense=f64", 60000},
               {"", 50000}};
  int kind = 0;
  if (strcmp(of, device)) return 5000;
  while (!strstr(name, kinds[kind].part)) kind++;
  return kinds[kind].least;
}

static void models_predict(const char *of, int models) {
  wlmi_model_record *records;
  OWNED(wlm_store) *store = open_store();
  GET(int64_t, count, wlmi_store_load_models(store, of, &records, &count));
  assert_int_equal(count, models);
  for (int64_t i = 0; i < count; i++) {
    HOLD(wlmi_model, model, wlmi_model_read(records[i].data, records[i].size, &model));
    assert_true(model.measurements > least_measurements(of, records[i].name));
    assert_true(model.tree_count > 0 && model.spread > 0 && model.spread < 0.5);
  }
  wlmi_model_records_free(records, count);
}

/* H200: five of sums (f32, the same for N <= 8, f32 with positions, f16 and f64), one each of messages, the SDDMM,
 * attention and its gradient. H100: f16. */
TEST(its_models_predict) {
  models_predict(device, 9);
  models_predict(h100, 1);
}

/* A problem that is asked for: `change` makes it of a measured one. */
typedef struct asked {
  const char *of, *but_not; /* parts of the keys of the measured ones; NULL = none */
  void (*change)(wlmi_spec *spec);
  const char *like; /* what the decisions say */
} asked;

static int is_asked(const asked *a, const wlmi_case *c) {
  return strstr(c->problem, a->of) && !(a->but_not && strstr(c->problem, a->but_not));
}

static void chosen_by(wlmi_step step, const wlmi_snapshot *snapshot, const asked *a, const wlmi_case *c) {
  char key[WLMI_SPEC_KEY];
  wlmi_decision decision;
  GET(wlmi_spec, spec, wlmi_spec_from_key(c->problem, c->n, &spec));
  a->change(&spec);
  wlmi_spec_key(&spec, key);
  assert_status(WLM_OK, shipped_choose(&(shipped_case){c->matrix, key, c->n, *c->stats}, snapshot, WLMI_USE_MEASURED, 1,
                                       &decision));
  if (decision.step != step || strcmp(decision.like, a->like))
    fail_msg("%s, %s, n = %lld: step %d%s", c->matrix, key, (long long)c->n, (int)decision.step, decision.like);
}

static int is_first_of_its_matrix(const asked *a, const wlmi_snapshot *all, int64_t i) {
  for (int64_t k = 0; k < i; k++)
    if (is_asked(a, &all->cases[k]) && !strcmp(all->cases[k].matrix, all->cases[i].matrix)) return 0;
  return 1;
}

/* Measurements of the matrix decide, and for other matrices the model. */
static void chosen_by_measurements_or_model(const asked *a, int least) {
  shipped_database database;
  wlmi_snapshot all, others;
  int count = 0;
  shipped_load(&database);
  shipped_snapshot_make(&database, NULL, 1, &all);
  for (int64_t i = 0; i < all.case_count; i++) {
    if (!is_asked(a, &all.cases[i]) || !is_first_of_its_matrix(a, &all, i)) continue;
    shipped_snapshot_make(&database, all.cases[i].matrix, 1, &others);
    for (int64_t k = i; k < all.case_count; k++) {
      const wlmi_case *c = &all.cases[k];
      if (!is_asked(a, c) || strcmp(c->matrix, all.cases[i].matrix)) continue;
      chosen_by(WLMI_STEP_FINGERPRINT, &all, a, c);
      chosen_by(WLMI_STEP_MODEL, &others, a, c);
      count++;
    }
    wlmi_snapshot_clear(&others);
  }
  assert_true(count >= least);
  wlmi_snapshot_clear(&all);
  shipped_release(&database);
}

/* Heads and dropout do not change what decides for attention and for its gradient. */
static void more_heads(wlmi_spec *spec) {
  spec->problem.heads = 8;
  spec->problem.dropout = 1;
}

TEST(attention_is_chosen_by_attention) {
  const asked forward = {",operation=attention", ",transpose=1", more_heads, ", without dropout, with one head"};
  const asked gradient = {",operation=attention,transpose=1", NULL, more_heads, forward.like};
  chosen_by_measurements_or_model(&forward, 20);
  chosen_by_measurements_or_model(&gradient, 20);
}

/* Nothing was measured in bf16. */
static void in_bf16(wlmi_spec *spec) { spec->problem.dense_type = spec->value_type = WLM_BF16; }

TEST(bf16_is_chosen_as_f16) { chosen_by_measurements_or_model(&(asked){"dense=f16", NULL, in_bf16, ", in f16"}, 150); }

/* Nothing was measured with 64-bit indices. */
static void with_wide_indices(wlmi_spec *spec) { spec->rowptr_type = spec->colind_type = WLM_I64; }

TEST(wide_indices_are_chosen_as_narrow_ones) {
  chosen_by_measurements_or_model(&(asked){"dense=f16", NULL, with_wide_indices, ", with 32-bit indices"}, 150);
}

static void as_it_is(wlmi_spec *spec) { (void)spec; }

TEST(sddmm_is_chosen_by_sddmm) {
  chosen_by_measurements_or_model(&(asked){",operation=sddmm", NULL, as_it_is, ""}, 90);
}

static void with_positions(wlmi_spec *spec) {
  spec->problem.reduce = WLM_MAX;
  spec->problem.want_argmax = 1;
}

static void with_positions_of_16_bits(wlmi_spec *spec) {
  with_positions(spec);
  spec->problem.argmax_type = WLM_I16;
}

static void in_f64(wlmi_spec *spec) { spec->problem.dense_type = spec->value_type = WLM_F64; }

/* Another message than the one that the model was trained on. */
static void with_a_line_for_each_edge(wlmi_spec *spec) {
  spec->problem.operation = WLM_MESSAGE;
  spec->problem.reduce = WLM_CUSTOM;
  strcpy(spec->custom, "sum=b*e");
}

/* The file has no measurements of positions and f64, and of messages only with N = 64, so models decide, also where the
 * sum was measured. */
TEST(other_kinds_than_sums_are_chosen_by_models) {
  const asked kinds[] = {{"dense=f32", ",operation=", with_positions, ""},
                         {"dense=f32", ",operation=", with_positions_of_16_bits, ", with 32-bit positions"},
                         {"dense=f32", ",operation=", in_f64, ""},
                         {"dense=f32", ",operation=", with_a_line_for_each_edge, ""}};
  shipped_database database;
  wlmi_snapshot all;
  shipped_load(&database);
  shipped_snapshot_make(&database, NULL, 1, &all);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    int count = 0;
    for (int64_t i = 0; i < all.case_count; i++) {
      const wlmi_case *c = &all.cases[i];
      if (!is_asked(&kinds[k], c) || !strstr(c->problem, "sample=none") || c->n <= WLMI_NARROW) continue;
      if (kinds[k].change == with_a_line_for_each_edge && c->n == 64) continue;
      chosen_by(WLMI_STEP_MODEL, &all, &kinds[k], c);
      count++;
    }
    assert_true(count > 500);
  }
  wlmi_snapshot_clear(&all);
  shipped_release(&database);
}

/* A matrix with one row of 8,342 non-zeros, of which only the size is known: kernels that give a row to one group of
 * lanes take fifty times as long there. */
TEST(a_huge_row_is_thought_of) {
  shipped_database database;
  wlmi_snapshot all;
  wlmi_decision decision;
  wlm_stats size = STATS(.rows = 91556, .cols = 732448, .nnz = 107120);
  size.mean = (double)size.nnz / (double)size.rows;
  shipped_load(&database);
  shipped_snapshot_make(&database, NULL, 1, &all);
  assert_status(
      WLM_OK,
      shipped_choose(&(shipped_case){"", "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none", 8, size},
                     &all, WLMI_USE_ESTIMATED, 1, &decision));
  assert_int_equal(decision.step, WLMI_STEP_MODEL);
  if (!strncmp(decision.variant, "row_vec/", 8)) fail_msg("%s", decision.variant);
  wlmi_snapshot_clear(&all);
  shipped_release(&database);
}

GROUP(emit_begin, emit_end)
