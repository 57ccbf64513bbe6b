/* Every function of the cuda device. */
#include "exported/tables.h"
#include "runtime/devices.h"
#include "runtime/dispatch/plan.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/gpu.h"
#include "support/kernel_check.h"
#include "support/test.h"

/* 4 x 5; row 1 is empty; no edge uses B's row 4. */
enum { ROWS = 4, COLS = 5, NNZ = 6, N = 3 };
static const int32_t rowptr32[] = {0, 2, 2, 5, 6};
static const int64_t rowptr64[] = {0, 2, 2, 5, 6};
static const int32_t colind[] = {0, 2, 3, 1, 1, 0};
static const float values[] = {1, 2, -1, 0.5f, 4, 3};
static const float b[COLS * N] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 99, 99, 99};
static const float expected[ROWS * N] = {15, 18, 21, 0, 0, 0, 8, 11.5f, 15, 3, 6, 9};

typedef struct product {
  wlm_csr csr;
  wlmi_spec spec;
  void *rowptr, *colind, *values, *b, *c;
  void *kernels[WLMI_MAX_PASSES];
  wlmi_module *module;
  wlm_plan plan;
} product;

static void product_make(product *p, wlm_index rowptr_type) {
  const int wide = rowptr_type == WLM_I64;
  float c[ROWS * N];
  *p = (product){.csr = WLM_CSR_INIT};
  memset(c, 0xff, sizeof c);
  p->rowptr = wide ? test_gpu_copy(rowptr64, sizeof rowptr64) : test_gpu_copy(rowptr32, sizeof rowptr32);
  p->colind = test_gpu_copy(colind, sizeof colind);
  p->values = test_gpu_copy(values, sizeof values);
  p->b = test_gpu_copy(b, sizeof b);
  p->c = test_gpu_copy(c, sizeof c);
  p->csr.rows = ROWS;
  p->csr.cols = COLS;
  p->csr.nnz = NNZ;
  p->csr.rowptr = p->rowptr;
  p->csr.colind = p->colind;
  p->csr.values = p->values;
  p->csr.rowptr_type = rowptr_type;
  wlm_problem problem = PROBLEM(.n = N);
  assert_status(WLM_OK, wlmi_spec_make(&problem, &p->csr, &p->spec));
}

static void product_release(product *p) {
  wlmi_device *device = test_gpu();
  void *const all[] = {p->rowptr, p->colind, p->values, p->b, p->c};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) device->ops->release(device, all[i]);
  device->ops->unload(device, p->module);
}

static void emit(const char *variant, const wlmi_spec *spec, wlmi_program *program) {
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  assert_status(WLM_OK, wlmi_generator_emit(generator, variant, spec, &test_gpu()->info.limits, program));
}

/* Loads a variant, or the built-in kernel if `variant` is NULL. */
static void product_load(product *p, const char *variant) {
  wlmi_device *device = test_gpu();
  HELD(wlmi_program) program = {0};
  if (variant) {
    size_t size;
    emit(variant, &p->spec, &program);
    WLM_FREED GET(void *, image, device->ops->compile(device, &program, &image, &size));
    assert_status(WLM_OK, device->ops->load(device, &program, image, size, p->kernels, &p->module));
  } else {
    const wlmi_exported_kernel *builtin = wlmi_exported_builtin(&wlmi_exported_tables, &device->info.limits, &p->spec);
    assert_non_null(builtin);
    const wlmi_exported_image *image = &wlmi_exported_tables.images[builtin->image];
    program = wlmi_exported_program(&wlmi_exported_tables, builtin, &device->info.limits);
    assert_status(WLM_OK, device->ops->load(device, &program, image->data, image->size, p->kernels, &p->module));
  }
  assert_status(WLM_OK, bare_plan_fill(&p->plan, device, &program, p->kernels, &p->csr, &p->spec));
  assert_int_equal(wlm_plan_workspace_size(&p->plan), 0);
}

static void product_check(const product *p) {
  float c[ROWS * N];
  assert_status(WLM_OK, test_gpu()->ops->copy_out(test_gpu(), NULL, c, p->c, sizeof c));
  for (int i = 0; i < ROWS * N; i++)
    if (c[i] != expected[i]) fail_msg("C[%d] is %g, not %g", i, (double)c[i], (double)expected[i]);
}

/* ---- device information ---------------------------------------------------------------------------- */

TEST(describes_itself) {
  const wlmi_device_info *info = &test_gpu()->info;
  char arch[32];
  snprintf(arch, sizeof arch, "sm_%d", info->limits.arch);
  print_message("%s, %s, %s, %s, %d processors, %lld KB shared, %lld MB L2, %lld MB\n", info->name, info->arch,
                info->driver, info->compiler, info->limits.processors, (long long)info->limits.shared_bytes >> 10,
                (long long)info->limits.l2_bytes >> 20, (long long)info->memory_bytes >> 20);
  assert_string_equal(info->kind, "cuda");
  assert_string_equal(info->arch, arch);
  assert_memory_equal(info->driver, "CUDA 1", 6);
  assert_true(info->name[0] != 0);
  assert_int_equal(info->limits.target, WLMI_TARGET_CUDA);
  assert_in_range(info->limits.arch, 50, 999);
  assert_true(info->limits.threads_per_block >= 1024 && info->limits.shared_bytes >= 48 << 10);
  assert_true(info->limits.processors > 0 && info->memory_bytes > 0 && info->limits.l2_bytes > 0);
}

TEST(refuses_missing_devices) {
  wlmi_device *device = test_gpu();
  assert_int_equal(wlmi_device_open("cuda:4000", &device), WLM_ERR_NO_DEVICE);
  assert_null(device);
  assert_non_null(strstr(wlm_error_detail(), "cuda:4000"));
}

TEST(opens_twice) {
  wlmi_device *first = test_gpu(), *second;
  assert_status(WLM_OK, wlmi_device_open("cuda:0", &second));
  assert_ptr_not_equal(first, second);
  second->ops->close(second);
  assert_status(WLM_OK, first->ops->synchronize(first, NULL));
}

/* ---- memory ---------------------------------------------------------------------------------------- */

TEST(memory_is_aligned_and_keeps_data) {
  wlmi_device *device = test_gpu();
  unsigned char in[1000], out[1000];
  void *memory, *empty;
  for (size_t i = 0; i < sizeof in; i++) in[i] = (unsigned char)(i * 7);
  assert_status(WLM_OK, device->ops->allocate(device, sizeof in, &memory));
  assert_status(WLM_OK, device->ops->allocate(device, 0, &empty));
  assert_int_equal((uintptr_t)memory % 256, 0);
  assert_status(WLM_OK, device->ops->copy_in(device, memory, in, sizeof in));
  assert_status(WLM_OK, device->ops->fill(device, NULL, (char *)memory + 10, 0xab, 20));
  assert_status(WLM_OK, device->ops->copy_out(device, NULL, out, memory, sizeof out));
  memset(in + 10, 0xab, 20);
  assert_memory_equal(in, out, sizeof in);
  assert_status(WLM_OK, device->ops->copy_in(device, memory, NULL, 0));
  assert_status(WLM_OK, device->ops->copy_out(device, NULL, NULL, memory, 0));
  assert_status(WLM_OK, device->ops->fill(device, NULL, memory, 0, 0));
  device->ops->release(device, memory);
  device->ops->release(device, empty);
  device->ops->release(device, NULL);
}

TEST(too_much_memory_is_refused) {
  wlmi_device *device = test_gpu();
  void *memory = &memory;
  assert_int_equal(device->ops->allocate(device, (size_t)device->info.memory_bytes * 4, &memory),
                   WLM_ERR_OUT_OF_MEMORY);
  assert_null(memory);
  assert_non_null(strstr(wlm_error_detail(), "CUDA_ERROR_OUT_OF_MEMORY"));
}

/* ---- code ------------------------------------------------------------------------------------------ */

TEST(a_family_gives_the_right_result) {
  static const char *const variants[] = {"row_naive/columns=32,rows=4,axis=units", "row_crc/cf=1,rows=4"};
  test_gpu();
  for (size_t i = 0; i < 2 * sizeof variants / sizeof *variants; i++) {
    MAKE(product, p, i % 2 ? WLM_I64 : WLM_I32);
    product_load(&p, variants[i / 2]);
    assert_status(WLM_OK, test_execute(&p.plan, p.b, p.c, NULL));
    assert_status(WLM_OK, test_gpu()->ops->synchronize(test_gpu(), NULL));
    product_check(&p);
  }
}

TEST(built_in_code_needs_no_compiler) {
  test_gpu();
  for (int type = WLM_I32; type <= WLM_I64; type++) {
    MAKE(product, p, (wlm_index)type);
    product_load(&p, NULL);
    assert_status(WLM_OK, test_execute(&p.plan, p.b, p.c, NULL));
    product_check(&p);
  }
}

TEST(built_in_code_does_not_cover_all) {
  MAKE(product, p, WLM_I32);
  p.spec.problem.reduce = WLM_MAX;
  assert_null(wlmi_exported_builtin(&wlmi_exported_tables, &test_gpu()->info.limits, &p.spec));
}

TEST(invalid_code_is_refused) {
  static const char broken[] = ".version 8.0\n.target sm_80\n.address_size 64\nbogus\n";
  wlmi_device *device = test_gpu();
  HELD(wlmi_program) program;
  size_t size;
  MAKE(product, p, WLM_I32);
  emit("row_crc/cf=1,rows=4", &p.spec, &program);
  assert_fails(WLM_ERR_DEVICE, device->ops->load(device, &program, broken, sizeof broken, p.kernels, &p.module),
               "row_crc/cf=1,rows=4");
  WLM_FREED GET(void *, image, device->ops->compile(device, &program, &image, &size));
  strcpy(program.passes[0].kernel, "wlm_nobody");
  assert_fails(WLM_ERR_DEVICE, device->ops->load(device, &program, image, size, p.kernels, &p.module), "wlm_nobody");
  assert_null(p.module);
}

TEST(a_bad_launch_is_reported_once) {
  test_gpu();
  MAKE(product, p, WLM_I32);
  product_load(&p, "row_crc/cf=1,rows=4");
  wlmi_launch launch = p.plan.bound.launches[0];
  launch.threads = 1 << 20;
  assert_fails(WLM_ERR_DEVICE, test_gpu()->ops->launch(test_gpu(), &launch, &p.plan.bound.args, NULL),
               "1048576 threads");
  assert_status(WLM_OK, test_execute(&p.plan, p.b, p.c, NULL));
  product_check(&p);
}

/* More than 48 KB of dynamic shared memory must be requested from the driver. */
TEST(large_shared_memory) {
  wlmi_device *device = test_gpu();
  int checked = 0;
  MAKE(product, p, WLM_I32);
  p.spec.problem.sampling.sample = WLM_SAMPLE_BUCKET;
  p.spec.problem.sampling.width = 2304;
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  OWN(wlmi_candidates, names, wlmi_generator_describe(generator, &p.spec, &device->info.limits, &names));
  for (int64_t i = 0; i < names->count; i++) {
    HELD(wlmi_program) program;
    assert_status(
        WLM_OK, wlmi_generator_emit(generator, names->candidates[i].variant, &p.spec, &device->info.limits, &program));
    if (program.passes[0].shared_bytes > 48 << 10) {
      kernel_check check = {.device = device, .spec = &p.spec, .runs = 1, .seed = 7};
      assert_status(WLM_OK, kernel_check_program(&check, &program));
      checked++;
    }
  }
  assert_true(checked > 0);
}

/* ---- timer ----------------------------------------------------------------------------------------- */

typedef struct counted {
  product *product;
  int calls, fail_at, block_at; /* the numbers of the calls that fail and that wait; 0 = none */
} counted;

static wlm_status enqueue(void *user, void *stream) {
  counted *c = user;
  if (++c->calls == c->fail_at) return wlmi_fail(WLM_ERR_INTERNAL, "call %d", c->calls);
  if (c->calls == c->block_at) {
    wlm_status status = test_gpu()->ops->synchronize(test_gpu(), stream);
    if (status != WLM_OK) return status;
  }
  wlm_execute_args call = EXECUTE_ARGS(.stream = stream);
  return test_execute_call(&c->product->plan, &call, c->product->b, c->product->c, NULL);
}

TEST(timer_replays_a_graph) {
  wlmi_device *device = test_gpu();
  wlmi_timer *timer;
  MAKE(product, p, WLM_I32);
  counted c = {.product = &p};
  double seconds = 0;
  product_load(&p, "row_crc/cf=1,rows=4");
  assert_status(WLM_OK, device->ops->timer_create(device, enqueue, &c, 50, &timer));
  int captured = c.calls;
  assert_in_range(captured, 50, 60);
  assert_status(WLM_OK, device->ops->fill(device, NULL, p.c, 0xff, sizeof expected));
  assert_status(WLM_OK, device->ops->synchronize(device, NULL)); /* the timer has its own stream */
  assert_status(WLM_OK, device->ops->timer_sample(timer, NULL, 0, &seconds));
  assert_true(seconds > 0 && seconds < 1);
  assert_int_equal(c.calls, captured); /* the graph is replayed without calling enqueue again */
  product_check(&p);
  device->ops->timer_destroy(timer);
}

TEST(failed_capture_leaves_no_trace) {
  wlmi_device *device = test_gpu();
  wlmi_timer *timer;
  MAKE(product, p, WLM_I32);
  counted fails = {.product = &p, .fail_at = 4}, blocks = {.product = &p, .block_at = 4};
  product_load(&p, "row_crc/cf=1,rows=4");
  assert_int_equal(device->ops->timer_create(device, enqueue, &fails, 9, &timer), WLM_ERR_INTERNAL);
  assert_null(timer);
  assert_string_equal(wlm_error_detail(), "call 4");
  assert_int_equal(device->ops->timer_create(device, enqueue, &blocks, 9, &timer), WLM_ERR_DEVICE);
  assert_null(timer);
  assert_non_null(strstr(wlm_error_detail(), "CAPTURE"));
  assert_status(WLM_OK, test_execute(&p.plan, p.b, p.c, NULL));
  product_check(&p);
}

GROUP(NULL, test_gpu_close)
