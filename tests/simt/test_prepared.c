/* Families that exist prepared alone, as emulated CUDA: windows and row_sorted. The covering set has few problems with
 * the 16-bit values that windows serves, so here variants of every kind are checked with such values. For small
 * matrices the tiles and the order of rows that a plan must have are checked, too. */
#include <omp.h>

#include "simt/shim/simt_device.h"
#include "support/bare_plan.h"
#include "support/emit_fixture.h"
#include "support/kernel_check.h"
#include "support/loaded.h"
#include "support/parallel.h"
#include "support/test.h"

typedef struct checked {
  const char *variant;
  int n;
  wlm_type type;
  wlm_reduce reduce;
  int transpose, wide; /* wide: indices of 64 bits */
} checked;

static const checked all[] = {
    {"windows/grouped=0,chunk=0,share=1,vector=8", 64, WLM_F16, WLM_SUM, 0, 0},
    {"windows/grouped=0,chunk=256,share=2,vector=4", 36, WLM_BF16, WLM_SUM, 0, 0},
    {"windows/grouped=0,chunk=0,share=4,vector=1", 13, WLM_F16, WLM_SUM, 1, 1},
    {"windows/grouped=1,chunk=0,share=2,vector=2", 10, WLM_BF16, WLM_SUM, 0, 1},
    {"windows/grouped=1,chunk=512,share=4,vector=8", 72, WLM_F16, WLM_SUM, 1, 0},
    {"windows/grouped=0,chunk=0,share=2,vector=8", 40, WLM_BF16, WLM_SUM, 1, 1},
    {"windows/grouped=0,chunk=0,share=1,vector=1", 7, WLM_BF16, WLM_SUM, 0, 0},
    {"windows/grouped=1,chunk=0,share=4,vector=4", 28, WLM_F16, WLM_SUM, 0, 0},
    {"row_sorted/threads=128,lanes=4,vector=4,batch=4,share=16", 16, WLM_F32, WLM_SUM, 0, 0},
    {"row_sorted/threads=256,lanes=4,vector=4,batch=4,share=16", 12, WLM_F32, WLM_MEAN, 0, 1},
    {"row_sorted/threads=128,lanes=4,vector=1,batch=16,share=32", 7, WLM_F32, WLM_MAX, 1, 0},
    {"row_sorted/threads=256,lanes=8,vector=8,batch=8,share=128", 72, WLM_F16, WLM_SUM, 0, 0},
    {"row_sorted/threads=128,lanes=4,vector=4,batch=16,share=16", 16, WLM_F16, WLM_SUM, 0, 0},
    {"row_sorted/threads=128,lanes=16,vector=2,batch=16,share=256", 50, WLM_BF16, WLM_MIN, 0, 1},
    {"row_sorted/threads=128,lanes=32,vector=1,batch=4,share=32", 67, WLM_F64, WLM_PROD, 1, 0},
};

static wlmi_device *device;

static void before_run(void *user, int run) {
  const int64_t *number = user;
  simt_device_seed(device, (uint64_t)(*number * 2 + run));
}

static int one(void *user, int64_t i) {
  (void)user;
  const checked *c = &all[i];
  HELD(wlmi_program) program = {0};
  wlmi_spec spec = emit_spec(c->n);
  spec.problem.dense_type = spec.value_type = c->type;
  spec.problem.reduce = c->reduce;
  spec.problem.want_argmax = c->reduce == WLM_MAX || c->reduce == WLM_MIN;
  spec.problem.transpose = c->transpose;
  if (c->wide) spec.rowptr_type = spec.colind_type = WLM_I64;
  const kernel_check check = {device, &spec, 2, before_run, &i, (uint64_t)i + 1};
  wlm_status status = wlmi_generator_emit(emit_generator, c->variant, &spec, &device->info.limits, &program);
  if (status == WLM_OK) status = kernel_check_program(&check, &program);
  if (status != WLM_OK) fprintf(stderr, "%s: %s\n", c->variant, wlm_error_detail());
  return status != WLM_OK;
}

static void describe(void *user, int64_t i) {
  (void)user;
  fprintf(stderr, "%s\n", all[i].variant);
}

TEST(results_agree_with_float64) {
  omp_set_num_threads(1); /* the test uses all cores with processes */
  assert_int_equal(test_in_parallel(sizeof all / sizeof *all, one, describe, NULL), 0);
}

/* Prepares a matrix and copies what the library keeps at the begin of prepared memory. */
static void prepare(const char *variant, const wlmi_spec *spec, const wlm_csr *csr, void *kept, size_t kept_size) {
  HELD(loaded) l = loaded_variant(device, emit_generator, variant, spec);
  void *prepared;
  wlm_plan plan = {0};
  assert_status(WLM_OK, bare_plan_fill(&plan, device, &l.program, l.kernels, csr, spec));
  assert_true(kept_size <= wlm_plan_prepared_size(&plan));
  assert_status(WLM_OK, device->ops->allocate(device, wlm_plan_prepared_size(&plan), &prepared));
  assert_status(WLM_OK, wlm_plan_prepare(&plan, prepared, NULL));
  assert_status(WLM_OK, device->ops->copy_out(device, NULL, kept, prepared, kept_size));
  device->ops->release(device, prepared);
}

/* The number of tiles of a matrix of 64 rows with 16 edges each, of which row r has the columns 16 (r % 8) and up.
 * Prepared memory begins with two numbers for each window, the second one of tiles. */
static int64_t tiles_of(const char *variant, int descending) {
  enum { ROWS = 64, EACH = 16, WINDOWS = ROWS / 8 };
  int32_t rowptr[ROWS + 1], colind[ROWS * EACH];
  long long spans[WINDOWS][2];
  int64_t tiles = 0;
  wlmi_spec spec = emit_spec(32);
  spec.problem.dense_type = WLM_F16;
  spec.has_values = 0;
  for (int row = 0; row <= ROWS; row++) rowptr[row] = row * EACH;
  for (int p = 0; p < ROWS * EACH; p++) colind[p] = p / EACH % 8 * EACH + (descending ? EACH - 1 - p % EACH : p % EACH);
  wlm_csr csr = CSR(.rows = ROWS, .cols = 8 * EACH, .nnz = ROWS * EACH, .rowptr = rowptr, .colind = colind);
  prepare(variant, &spec, &csr, spans, sizeof spans);
  for (int window = 0; window < WINDOWS; window++) tiles += spans[window][1];
  return tiles;
}

TEST(common_columns_share_a_place) {
  /* Windows of consecutive rows have all 128 columns; those of equal rows have 16. */
  assert_int_equal(tiles_of("windows/grouped=0,chunk=0,share=1,vector=4", 0), 8 * 8);
  assert_int_equal(tiles_of("windows/grouped=1,chunk=0,share=1,vector=4", 0), 8);
}

TEST(edges_out_of_order_get_a_place_each) {
  assert_int_equal(tiles_of("windows/grouped=1,chunk=0,share=1,vector=4", 1), 64);
}

/* Row r has 5 r edges. After 1024 numbers, prepared memory has an entry for each group: 16 times the row and log2 of
 * the groups that share it, where the row begins and how many edges it has. */
TEST(longer_rows_come_first_and_get_more_groups) {
  enum { ROWS = 40, NNZ = 5 * ROWS * (ROWS - 1) / 2, GROUPS = 128 / 4 };
  enum { ENTRIES = (ROWS + (NNZ + 7) / 8 + GROUPS - 1) / GROUPS * GROUPS };
  struct entry {
    long long of;
    int32_t begin, length;
  };
  static struct {
    long long bins[1024];
    struct entry entries[ENTRIES];
  } kept;
  int32_t rowptr[ROWS + 1] = {0}, colind[NNZ] = {0};
  int groups[ROWS] = {0}, before = 5 * ROWS;
  const wlmi_spec spec = emit_spec(16);
  for (int row = 0; row < ROWS; row++) rowptr[row + 1] = rowptr[row] + 5 * row;
  wlm_csr csr = CSR(.rows = ROWS, .cols = ROWS, .nnz = NNZ, .rowptr = rowptr, .colind = colind);
  prepare("row_sorted/threads=128,lanes=4,vector=4,batch=4,share=16", &spec, &csr, &kept, sizeof kept);
  for (int i = 0; i < ENTRIES; i++) {
    const struct entry *entry = &kept.entries[i];
    if (entry->of < 0) continue;
    const int row = (int)(entry->of / 16), length = 5 * row, shares = 1 << entry->of % 16;
    assert_true(length <= before + (before > 64 ? before / 8 : 0)); /* of about one length, any row comes first */
    before = length;
    assert_true(length <= 16 * shares && (shares == 1 || length > 8 * shares));
    assert_int_equal(entry->begin, rowptr[row]);
    assert_int_equal(entry->length, length);
    assert_memory_equal(entry, &kept.entries[i / shares * shares], sizeof *entry); /* in one block, side by side */
    groups[row]++;
    if (i % shares == shares - 1) assert_int_equal(groups[row], shares);
  }
  for (int row = 0; row < ROWS; row++) assert_true(groups[row] > 0);
}

static int begin(void **state) {
  const int failed = emit_begin(state);
  return failed || simt_device_open(&device) != WLM_OK;
}

static int end(void **state) {
  device->ops->close(device);
  return emit_end(state);
}

GROUP(begin, end)
