/* The kernels that copy between columns and rows, as fibers under ASan and UBSan: every size of element, arrays of
 * exactly the needed size around the edges of tiles, and nothing written between columns. */
#include "runtime/dispatch/plan.h"
#include "simt/shim/simt_device.h"
#include "support/loaded.h"
#include "support/test.h"

static wlmi_device *device;
static void **kernels;
static wlmi_pass pass;

static unsigned char element(int64_t line, int64_t column, size_t byte) {
  return (unsigned char)(line * 31 + column * 7 + (int64_t)byte * 3 + line * column);
}

/* An array with its first element at `lines` = `columns` = 0, elements `line_step` and `column_step` apart. */
typedef struct dense {
  int64_t line_step, column_step;
  char *memory;
  size_t bytes;
} dense;

static dense dense_make(int64_t lines, int64_t n, size_t size, int by_columns, int64_t ld) {
  dense d = {by_columns ? 1 : ld, by_columns ? ld : 1, NULL, 0};
  d.bytes = (size_t)((lines - 1) * d.line_step + (n - 1) * d.column_step + 1) * size;
  assert_non_null(d.memory = malloc(d.bytes));
  memset(d.memory, 0xff, d.bytes);
  return d;
}

static void check(int64_t lines, int64_t n, size_t size, int to_columns, int64_t more, uint64_t seed) {
  const int64_t by_columns = lines + more, by_rows = n + more;
  dense from = dense_make(lines, n, size, !to_columns, to_columns ? by_rows : by_columns),
        to = dense_make(lines, n, size, to_columns, to_columns ? by_columns : by_rows);
  const struct wlm_batch_launch args = {{.rows = lines,
                                         .n = n,
                                         .b = from.memory,
                                         .ldb = to_columns ? by_rows : by_columns,
                                         .c = to.memory,
                                         .ldc = to_columns ? by_columns : by_rows},
                                        {.count = 1},
                                        {1, 1}};
  const wlmi_extent extent = {.rows = lines, .n = n};
  wlmi_launch launch;
  void *kernel = kernels[3 * to_columns + (size == 2 ? 0 : size == 4 ? 1 : 2)];
  for (int64_t i = 0; i < lines; i++)
    for (int64_t j = 0; j < n; j++)
      for (size_t k = 0; k < size; k++)
        from.memory[(size_t)(i * from.line_step + j * from.column_step) * size + k] = (char)element(i, j, k);
  simt_device_seed(device, seed);
  assert_status(
      WLM_OK, wlmi_launch_make(&pass, WLMI_TARGET_CUDA, wlmi_pass_unit_blocks(&pass, &extent, 0), n, kernel, &launch));
  assert_status(WLM_OK, device->ops->launch(device, &launch, &args.args, NULL));
  for (int64_t i = 0; i < lines; i++)
    for (int64_t j = 0; j < n; j++)
      for (size_t k = 0; k < size; k++) {
        char *at = to.memory + (size_t)(i * to.line_step + j * to.column_step) * size + k;
        assert_int_equal((unsigned char)*at, element(i, j, k));
        *at = (char)0xff;
      }
  for (size_t i = 0; i < to.bytes; i++) assert_int_equal((unsigned char)to.memory[i], 0xff);
  free(from.memory);
  free(to.memory);
}

TEST(every_size) {
  static const int64_t sizes[][2] = {{1, 2},   {63, 15}, {64, 16}, {65, 17}, {300, 2},
                                     {5, 100}, {256, 7}, {1, 65},  {130, 64}};
  assert_status(WLM_OK, simt_device_open(&device));
  loaded l = loaded_helper(device, WLMI_HELPER_LAYOUT, WLM_I32, WLM_I32, 0);
  kernels = l.kernels;
  pass = l.program.passes[0];
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int kind = 0; kind < 6; kind++)
      check(sizes[i][0], sizes[i][1], (size_t)2 << kind % 3, kind / 3, (int64_t)i % 3, (uint64_t)i + 1);
  loaded_release(&l);
  device->ops->close(device);
}
