/* Plans and calls of a context whose device is the simt shim: emitted CUDA for column-major arrays, which kernels take
 * where they are or which are copied, and for indices that count from 1, with the kernels that build A^T. */
#include "runtime/context.h"
#include "simt/shim/simt_device.h"
#include "support/orders_check.h"
#include "support/strided_check.h"
#include "support/test.h"

enum { ONE_IN = 3 }; /* families of a product */

static wlm_context *context;

static int begin(void **state) {
  wlmi_device *device;
  (void)state;
  wlm_context_options options = BARE_OPTIONS();
  if (simt_device_open(&device) != WLM_OK) return 1;
  device->info.limits.processors = 4;                                  /* which the rules divide by */
  snprintf(device->info.compiler, sizeof device->info.compiler, "cc"); /* without one, all arrays are copied */
  return wlmi_context_create_on(device, &options, &context) != WLM_OK;
}

FIXTURE(end) {
  wlm_context_destroy(context);
  return 0;
}

TEST_BETWEEN(every_request_in_every_order, begin, end) { orders_check(context, 6, 51); }

TEST(every_request_without_a_compiler) {
  wlm_context_options options = BARE_OPTIONS();
  GET(wlmi_device *, device, simt_device_open(&device));
  device->info.limits.processors = 4;
  OWN(wlm_context, bare, wlmi_context_create_on(device, &options, &bare));
  orders_check(bare, 16, 52);
}

/* Each product with orders and batches of its own, by one kernel of each family that this run draws. */
TEST_BETWEEN(every_family, begin, end) {
  static const int layouts[] = {0, 6, 1, 2, 7};
  int families = 0;
  for (int p = 0; p < STRIDED_PRODUCTS; p++)
    for (int turn = 0; turn < 2; turn++) /* some families are for few columns, and vectors need multiples of 4 */
      families += strided_check(context, &strided_products[p], &strided_layouts[layouts[(2 * p + turn) % 5]],
                                turn    ? 16
                                : p % 2 ? 4
                                        : 2,
                                ONE_IN, (uint64_t)p + 81);
  assert_in_range(families, 100, 300);
}

/* ---- arrays that are copied because it takes less time -------------------------------------------------- */

enum { MOST_N = 16, MOST_ROWS = 26000, MOST_COLS = 600, MOST_NNZ = 26000 };

static int32_t rowptr[MOST_ROWS + 1], colind[MOST_NNZ];
static float values[MOST_NNZ], b[MOST_COLS * MOST_N], b_columns[MOST_COLS * MOST_N], c[MOST_ROWS * MOST_N],
    c_columns[MOST_ROWS * MOST_N];

static size_t run(const wlm_csr *csr, int64_t n, wlm_order order, const char *variant, const char *explained) {
  const int by_columns = order == WLM_COLUMN_MAJOR;
  wlm_problem problem = PROBLEM(.n = n, .b_order = order, .c_order = order);
  wlm_execute_args args = EXECUTE_ARGS(.b = by_columns ? b_columns : b, .c = by_columns ? c_columns : c);
  OWN(wlm_matrix, matrix, wlm_matrix_create(context, csr, NULL, &matrix));
  OWN(wlm_plan, plan, wlm_plan_create_variant(context, matrix, &problem, variant, &plan));
  WLM_FREED GET(char *, text, wlm_plan_explain(plan, 0, &text));
  assert_true(by_columns == (strstr(text, explained) != NULL));
  args.workspace_size = wlm_plan_workspace_size(plan);
  args.workspace = aligned_alloc(256, (args.workspace_size + 256) / 256 * 256);
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  free(args.workspace);
  return args.workspace_size;
}

typedef struct sizes {
  int64_t rows, cols, of_row, n; /* of_row: non-zeros */
} sizes;

/* The same bits in both orders; `copied`: the bytes of the copies. */
static void check(sizes s, const char *variant, const char *explained, int64_t copied) {
  test_random random = {91};
  for (int64_t i = 0; i <= s.rows; i++) rowptr[i] = (int32_t)(i * s.of_row);
  for (int64_t p = 0; p < s.rows * s.of_row; p++) {
    colind[p] = (int32_t)test_draw(&random, (uint64_t)s.cols);
    values[p] = (float)test_draw(&random, 9) - 4;
  }
  for (int64_t k = 0; k < s.cols; k++)
    for (int64_t j = 0; j < s.n; j++) b[k * s.n + j] = b_columns[j * s.cols + k] = (float)test_draw(&random, 100);
  const wlm_csr csr = CSR(.rows = s.rows, .cols = s.cols, .nnz = s.rows * s.of_row, .rowptr = rowptr, .colind = colind,
                          .values = values);
  const size_t own = (run(&csr, s.n, WLM_ROW_MAJOR, variant, explained) + 255) / 256 * 256;
  assert_int_equal(run(&csr, s.n, WLM_COLUMN_MAJOR, variant, explained), own + (size_t)copied);
  for (int64_t i = 0; i < s.rows; i++)
    for (int64_t j = 0; j < s.n; j++) assert_memory_equal(&c_columns[j * s.rows + i], &c[i * s.n + j], sizeof *c);
}

TEST_BETWEEN(arrays_are_copied_where_that_is_faster, begin, end) {
  static const char by_row[] = "row_vec/lanes=4,vector=4,batch=4", narrow[] = "row_vec/lanes=2,vector=4,batch=4",
                    by_share[] = "row_block/threads=128,rows=64,lanes=4,vector=4,batch=4";
  static const char neither[] = "\ncolumns   c stays where it is, b stays where it is\n",
                    only_b[] = "\ncolumns   c stays where it is, b is copied by rows\n",
                    both[] = "\ncolumns   c is copied by rows, b is copied by rows\n";
  check((sizes){60, 600, 10, 8}, narrow, neither, 0);
  check((sizes){100, 600, 260, 8}, narrow, neither, 0);
  check((sizes){60, 600, 10, 16}, by_row, only_b, 600 * 16 * 4);   /* more columns than are read in place */
  check((sizes){26000, 600, 1, 16}, by_row, only_b, 600 * 16 * 4); /* a warp stores 8 rows at once */
  check((sizes){26000, 600, 1, 16}, by_share, both, 26000 * 16 * 4 + 600 * 16 * 4); /* and here one */
}
