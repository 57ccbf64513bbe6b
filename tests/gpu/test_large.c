/* Sizes past 2^31 and 2^32: C has more elements than an int or an unsigned int counts. Rows at the start of C, across
 * both boundaries and at the end are compared with float64; an offset that wraps leaves the poison in some of them. */
#include "core/reference/reference.h"
#include "exported/tables.h"
#include "runtime/dispatch/plan.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/gpu.h"
#include "support/loaded.h"
#include "support/shapes.h"
#include "support/test.h"
#include "tuner/tolerance.h"

enum { ROWS = (1 << 22) + 3, COLS = 96, N = 1032, LONGEST = 40, S = 32 };
enum { PLACES = 4, AROUND = 64, CHECKED = PLACES * AROUND };
static const int64_t c_size = (int64_t)ROWS * N * (int64_t)sizeof(float);

typedef struct large {
  wlmi_csr_host a;
  wlm_csr csr; /* on the device */
  float *b;
  void *rowptr, *colind, *values, *device_b, *c;
  int64_t checked[CHECKED]; /* row numbers: AROUND consecutive rows at each place */
  double *expected, *scale; /* of the checked rows */
  float *found;
} large;
static large made; /* made once and used by all tests */

/* Rows have 0 to 3 edges; some have one more than the sample keeps. */
static void make_matrix(wlmi_csr_host *a) {
  test_random random = {1};
  *a = (wlmi_csr_host){.rows = ROWS, .cols = COLS};
  assert_status(WLM_OK, wlmi_alloc_array(ROWS + 1, sizeof *a->rowptr, "rowptr", (void **)&a->rowptr));
  a->rowptr[0] = 0;
  for (int64_t row = 0; row < ROWS; row++)
    a->rowptr[row + 1] = a->rowptr[row] + (row % AROUND == 5 ? LONGEST : row % 4);
  a->nnz = a->rowptr[ROWS];
  assert_status(WLM_OK, wlmi_alloc_array(a->nnz, sizeof *a->colind, "colind", (void **)&a->colind));
  assert_status(WLM_OK, wlmi_alloc_array(a->nnz, sizeof *a->values, "values", (void **)&a->values));
  for (int64_t i = 0; i < a->nnz; i++) {
    a->colind[i] = (int32_t)test_draw(&random, COLS);
    a->values[i] = test_draw_between(&random, -1, 1);
  }
}

static void choose_rows(int64_t checked[CHECKED]) {
  const int64_t first[PLACES] = {0, ((int64_t)1 << 31) / N - AROUND / 2, ((int64_t)1 << 32) / N - AROUND / 2,
                                 ROWS - AROUND};
  for (int i = 0; i < CHECKED; i++) checked[i] = first[i / AROUND] + i % AROUND;
}

static void make_operands(large *l) {
  test_random random = {2};
  make_matrix(&l->a);
  choose_rows(l->checked);
  const int64_t nnz = l->a.nnz, block = (int64_t)CHECKED * N;
  assert_status(WLM_OK, wlmi_alloc_array(COLS * N, sizeof *l->b, "B", (void **)&l->b));
  for (int i = 0; i < COLS * N; i++) l->b[i] = test_draw_between(&random, -1, 1);
  assert_status(WLM_OK, wlmi_alloc_array(block, sizeof *l->expected, "reference", (void **)&l->expected));
  assert_status(WLM_OK, wlmi_alloc_array(block, sizeof *l->scale, "reference", (void **)&l->scale));
  assert_status(WLM_OK, wlmi_alloc_array(block, sizeof *l->found, "rows of C", (void **)&l->found));
  l->rowptr = test_gpu_copy(l->a.rowptr, (ROWS + 1) * sizeof *l->a.rowptr);
  l->colind = test_gpu_copy(l->a.colind, (size_t)nnz * sizeof *l->a.colind);
  l->values = test_gpu_copy(l->a.values, (size_t)nnz * sizeof *l->a.values);
  l->device_b = test_gpu_copy(l->b, COLS * N * sizeof *l->b);
  l->csr = (wlm_csr)WLM_CSR_INIT;
  l->csr.rows = ROWS;
  l->csr.cols = COLS;
  l->csr.nnz = nnz;
  l->csr.rowptr = l->rowptr;
  l->csr.colind = l->colind;
  l->csr.values = l->values;
  l->csr.rowptr_type = WLM_I64;
}

/* Makes the operands. Skips the test if the GPU has no room for C. */
static large *operands(void) {
  wlmi_device *device = test_gpu();
  if (made.c) return &made;
  void *c;
  wlm_status status = device->ops->allocate(device, (size_t)c_size, &c);
  if (status == WLM_ERR_OUT_OF_MEMORY) test_missing("gpu_memory", "17 GB of free GPU memory", wlm_error_detail());
  assert_status(WLM_OK, status);
  make_operands(&made);
  made.c = c; /* set last: all other operands exist */
  return &made;
}

static int release(void **state) {
  void *const memory[] = {made.rowptr, made.colind, made.values, made.device_b, made.c};
  for (size_t i = 0; made.c && i < sizeof memory / sizeof *memory; i++) test_gpu()->ops->release(test_gpu(), memory[i]);
  wlmi_csr_host_release(&made.a);
  wlmi_free(made.b);
  wlmi_free(made.expected);
  wlmi_free(made.scale);
  wlmi_free(made.found);
  return test_gpu_close(state);
}

/* The call of every product. */
static wlm_execute_args scaled(void) { return (wlm_execute_args)EXECUTE_ARGS(.alpha = 1.5); }

static void problem_make(large *l, wlm_sample sample, wlmi_spec *spec) {
  wlm_execute_args call = scaled();
  wlm_problem problem = PROBLEM(.n = N, .sampling.sample = sample, .sampling.width = sample == WLM_SAMPLE_NONE ? 0 : S);
  assert_status(WLM_OK, wlmi_spec_make(&problem, &l->csr, spec));
  call.b = l->b;
  const wlmi_reference_result expected = {l->expected, l->scale, NULL};
  assert_status(WLM_OK, wlmi_reference_rows(&l->a, &spec->problem, &call, l->checked, CHECKED, &expected));
}

/* Executes the loaded kernels over a C full of NaN and compares the checked rows. */
static void check(large *l, const wlmi_spec *spec, const wlmi_program *program, void *const *kernels,
                  const char *name) {
  wlmi_device *device = test_gpu();
  const wlm_execute_args call = scaled();
  wlm_plan plan = {0};
  void *workspace = NULL, *prepared = NULL;
  assert_status(WLM_OK, bare_plan_fill(&plan, device, program, kernels, &l->csr, spec));
  assert_status(WLM_OK, device->ops->allocate(device, wlm_plan_workspace_size(&plan), &workspace));
  assert_status(WLM_OK, device->ops->allocate(device, wlm_plan_prepared_size(&plan), &prepared));
  assert_status(WLM_OK, device->ops->fill(device, NULL, l->c, 0xff, (size_t)c_size));
  assert_status(WLM_OK, device->ops->fill(device, NULL, prepared, 0xff, wlm_plan_prepared_size(&plan)));
  assert_status(WLM_OK, wlm_plan_prepare(&plan, prepared, NULL));
  assert_status(WLM_OK, test_execute_call(&plan, &call, l->device_b, l->c, workspace));
  assert_status(WLM_OK, device->ops->synchronize(device, NULL));
  for (int i = 0; i < PLACES; i++) {
    const int64_t at = (int64_t)i * AROUND, row = l->checked[at];
    float *found = l->found + at * N;
    assert_status(WLM_OK,
                  device->ops->copy_out(device, NULL, found, (float *)l->c + row * N, AROUND * N * sizeof *found));
    double error = wlmi_reference_error(WLM_F32, found, N, NULL, AROUND, N, l->expected + at * N, l->scale + at * N);
    if (!(error <= wlmi_tolerance(&spec->problem, LONGEST)))
      fail_msg("%s: max_rel_err %.3g in the rows from %lld on", name, error, (long long)row);
  }
  device->ops->release(device, workspace);
  device->ops->release(device, prepared);
}

static void check_variant(large *l, wlmi_generator *generator, const wlmi_spec *spec, const char *variant) {
  HELD(loaded) kernels = loaded_variant(test_gpu(), generator, variant, spec);
  check(l, spec, &kernels.program, kernels.kernels, variant);
}

static int same_family(const char *a, const char *b) {
  size_t size = strcspn(a, "/");
  return size == strcspn(b, "/") && !strncmp(a, b, size);
}

/* Checks the first and the last candidate of every family; returns the number of families. */
static int check_families(wlm_sample sample) {
  wlmi_spec spec;
  int families = 0;
  test_gpu();
  test_needs_nvrtc();
  large *l = operands();
  problem_make(l, sample, &spec);
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  OWN(wlmi_candidates, names, wlmi_generator_describe(generator, &spec, &test_gpu()->info.limits, &names));
  for (int64_t i = 0; i < names->count; i++) {
    int first = i == 0 || !same_family(names->candidates[i].variant, names->candidates[i - 1].variant);
    int last = i == names->count - 1 || !same_family(names->candidates[i].variant, names->candidates[i + 1].variant);
    if (!first && !last) continue;
    check_variant(l, generator, &spec, names->candidates[i].variant);
    families += first;
  }
  return families;
}

TEST(every_family) { assert_true(check_families(WLM_SAMPLE_NONE) > 1); }

TEST(sampled) { assert_true(check_families(WLM_SAMPLE_FASTRAND) > 0); }

TEST(built_in) {
  wlmi_device *device = test_gpu();
  void *kernels[WLMI_MAX_PASSES];
  wlmi_module *module;
  wlmi_spec spec;
  large *l = operands();
  problem_make(l, WLM_SAMPLE_NONE, &spec);
  const wlmi_exported_kernel *builtin = wlmi_exported_builtin(&wlmi_exported_tables, &device->info.limits, &spec);
  assert_non_null(builtin);
  const wlmi_exported_image *image = &wlmi_exported_tables.images[builtin->image];
  wlmi_program program = wlmi_exported_program(&wlmi_exported_tables, builtin, &device->info.limits);
  assert_status(WLM_OK, device->ops->load(device, &program, image->data, image->size, kernels, &module));
  check(l, &spec, &program, kernels, "the library's own kernel");
  device->ops->unload(device, module);
}

GROUP(NULL, release)
