/* How the products of a batch are divided among launches: by z of the grid, by the workspace, and one by one. */
#include "runtime/dispatch/batch.h"
#include "support/bare_plan.h"
#include "support/test.h"

enum { MOST = 40, N = 32, ROWS = 10 };

typedef struct recorded {
  wlmi_launch launch;
  struct wlm_batch_launch kernel;
} recorded;
static recorded list[MOST];
static int count;

static wlm_status record(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                         void *stream) {
  (void)device, (void)stream;
  assert_in_range(count, 0, MOST - 1);
  list[count++] = (recorded){*launch, *(const struct wlm_batch_launch *)args};
  return WLM_OK;
}

static const wlmi_device_ops ops = {.launch = record};

/* Binds and runs a program of one pass; returns the workspace's size. */
static size_t run(int64_t batch, int is_batched, size_t workspace, wlmi_axis axis, int64_t n) {
  static wlmi_device device = {.ops = &ops, .info.limits.target = WLMI_TARGET_CUDA};
  static const int32_t indices[ROWS + 1];
  static wlm_plan plan;
  static _Alignas(16) char memory[64 << 20], dense[16];
  wlmi_program program = {.pass_count = 1, .uses_b = 1, .is_batched = is_batched, .workspace.one = (int64_t)workspace};
  program.passes[0] = (wlmi_pass){.axis = axis, .units = WLMI_UNITS_ROWS, .units_per_block = 1, .columns_per_block = 1};
  wlm_csr csr = CSR(.rows = ROWS, .cols = ROWS, .rowptr = indices, .colind = indices, .values = dense);
  wlm_problem problem = PROBLEM(.n = n, .batch = batch);
  wlm_execute_args args = EXECUTE_ARGS(.b = memory + 60000000, .c = dense, .b_stride = 0, .c_stride = ROWS * n,
                                       .values_stride = 2, .workspace = memory, .workspace_size = sizeof memory);
  count = 0;
  GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
  plan = (wlm_plan){.device = NULL};
  assert_status(WLM_OK, bare_plan_fill(&plan, &device, &program, (void *[WLMI_MAX_PASSES]){dense}, &csr, &spec));
  args.workspace_size = plan.bound.workspace_size;
  args.c = (void *)(uintptr_t)0x700000000000; /* no kernel writes there */
  assert_status(WLM_OK, wlmi_run("run", &plan.shape, &plan.bound, &args, NULL));
  return plan.bound.workspace_size;
}

static int64_t c_of(int i) { return (int64_t)((uintptr_t)list[i].kernel.args.c - 0x700000000000) / (ROWS * N * 4); }

TEST(one_launch) {
  assert_int_equal(run(64, 1, 0, WLMI_AXIS_UNITS_FIRST, N), 0);
  assert_int_equal(count, 1);
  assert_int_equal(list[0].launch.grid[0], ROWS);
  assert_int_equal(list[0].launch.grid[1], N);
  assert_int_equal(list[0].launch.grid[2], 64);
  assert_int_equal(list[0].launch.products, 64);
  assert_int_equal(list[0].kernel.batch.count, 64);
  assert_int_equal(list[0].kernel.batch.b, 0);
  assert_int_equal(list[0].kernel.batch.c, ROWS * N * 4);
  assert_int_equal(list[0].kernel.batch.values, 8);
}

TEST(z_of_the_grid_ends) {
  run(70000, 1, 0, WLMI_AXIS_UNITS_FIRST, N);
  assert_int_equal(count, 2);
  assert_int_equal(list[0].launch.grid[2], 65535);
  assert_int_equal(list[1].launch.grid[2], 70000 - 65535);
  assert_int_equal(list[1].kernel.batch.count, 70000 - 65535);
  assert_int_equal(c_of(1), 65535);
}

TEST(the_workspace_is_for_some_of_them) {
  assert_int_equal(run(40, 1, (1 << 20) - 5, WLMI_AXIS_UNITS_FIRST, N), 32 << 20);
  assert_int_equal(count, 2);
  assert_int_equal(list[0].launch.grid[2], 32);
  assert_int_equal(list[0].kernel.batch.workspace, 1 << 20);
  assert_int_equal(list[1].launch.grid[2], 8);
  assert_int_equal(c_of(1), 32);
  assert_int_equal(run(3, 1, 33 << 20, WLMI_AXIS_UNITS_FIRST, N), 33 << 20);
  assert_int_equal(count, 3);
}

TEST(one_by_one) {
  run(4, 0, 48, WLMI_AXIS_UNITS_FIRST, N);
  assert_int_equal(count, 4);
  assert_int_equal(list[3].launch.grid[2], 1);
  assert_int_equal(list[3].launch.products, 1);
  assert_int_equal(c_of(3), 3);
  run(2, 1, 0, WLMI_AXIS_UNITS_FIRST, 65535); /* blocks of columns need y and z */
  assert_int_equal(count, 2);
  assert_int_equal(list[1].launch.grid[1], 65535);
  assert_int_equal(list[1].launch.grid[2], 1);
  run(2, 1, 0, WLMI_AXIS_UNITS_FIRST, 65534);
  assert_int_equal(count, 1);
}

TEST(none) {
  run(0, 1, 0, WLMI_AXIS_UNITS_FIRST, N);
  assert_int_equal(count, 0);
}
