/* A family with a prepare pass as emitted CUDA: correct under ASan and against float64, with prepared memory of exactly
 * the stated size; and broken versions of it, whose errors the kernel check must find. */
#include <omp.h>

#include "runtime/cuda/nvrtc.h"
#include "simt/shim/simt_device.h"
#include "support/emit_fixture.h"
#include "support/kernel_check.h"
#include "support/parallel.h"
#include "support/test.h"

/* A family whose prepare pass has other blocks than its execute pass: one thread prepares one block of the latter.
 * The parameters break it: past writes one block too many, part one too few, values keeps a value of A. */
static const char family[] =
    "return { target = \"cuda\", summary = \"a test\",\n"
    "  parameters = { { \"prepares\", { \"right\", \"past\", \"part\", \"values\" } } },\n"
    "  passes = function() return {\n"
    "    { kernel = \"starts_prepare\", when = \"prepare\", units = \"rows\", units_per_block = 128, threads = 32 },\n"
    "    { kernel = \"starts\", units = \"rows\", units_per_block = 4, columns_per_block = 32, threads = 128 } } end,\n"
    "  prepared = function() return { blocks = 24 } end }\n";
static const char kernel[] =
    "% local extra = ({ past = 1, part = -1 })[prepares] or 0\n"
    "typedef struct { long long begin, end; wlm_val_t value; } piece;\n"
    "WLM_KERNEL(starts_prepare, 32) {\n"
    "  const long long block = wlm_fast_block() * 32 + threadIdx.x, blocks = (args.rows + 3) / 4;\n"
    "  if (block >= blocks + @{extra}) return;\n"
    "  const long long first = 4 * block < args.rows ? 4 * block : args.rows;\n"
    "  const long long last = first + 4 < args.rows ? first + 4 : args.rows;\n"
    "  piece *mine = (piece *)args.prepared + block;\n"
    "  mine->begin = wlm_begin(&args, first);\n"
    "  mine->end = wlm_begin(&args, last);\n"
    "  mine->value = 0;\n"
    "% if prepares == 'values' then\n"
    "  if (mine->begin < mine->end) mine->value = wlm_load_a(&args, mine->begin);\n"
    "% end\n"
    "}\n"
    "WLM_KERNEL(starts, 128) {\n"
    "  const piece *mine = (const piece *)args.prepared + wlm_fast_block();\n"
    "  const long long row = wlm_fast_block() * 4 + threadIdx.x / 32u;\n"
    "  const long long column = wlm_slow_block() * 32 + threadIdx.x % 32u;\n"
    "  if (row >= args.rows || column >= args.n) return;\n"
    "  const long long begin = wlm_begin(&args, row), end = wlm_begin(&args, row + 1);\n"
    "  wlm_acc_t acc = wlm_init();\n"
    "  for (long long p = mine->begin; p < mine->end; p++)\n"
    "    if (p >= begin && p < end)\n"
    "      acc = wlm_reduce(acc, wlm_message(wlm_load_a(&args, p),\n"
    "        wlm_load_b((const wlm_b_t *)args.b + wlm_column(&args, p) * args.ldb + column)));\n"
    "  acc += 0 * mine->value;\n"
    "  wlm_store(&args, (wlm_c_t *)args.c + row * args.ldc + column, column, wlm_finish(acc, end - begin));\n"
    "}\n";

static wlmi_generator *generator;
static wlmi_device *device;

FIXTURE(begin) {
  test_folder made;
  folder_make(&made);
  emit_write(&made, "starts", "family.lua", family);
  emit_write(&made, "starts", "kernel.cu.in", kernel);
  assert_status(WLM_OK, wlmi_generator_create(made.path, &generator));
  folder_remove(&made);
  assert_status(WLM_OK, simt_device_open(&device));
  return 0;
}

FIXTURE(end) {
  device->ops->close(device);
  wlmi_generator_destroy(generator);
  return 0;
}

static wlm_status check(const char *variant, int runs) {
  HELD(wlmi_program) program = {0};
  const wlmi_spec spec = emit_spec(35);
  const kernel_check how = {.device = device, .spec = &spec, .runs = runs, .seed = 3};
  wlm_status status = wlmi_generator_emit(generator, variant, &spec, &device->info.limits, &program);
  if (status == WLM_OK) status = kernel_check_program(&how, &program);
  return status;
}

TEST(preparing_again_gives_the_same_result) { assert_status(WLM_OK, check("starts/prepares=right", 2)); }

TEST(nvrtc_compiles_it) {
  int major, minor;
  size_t size;
  const wlmi_spec spec = emit_spec(35);
  if (wlmi_nvrtc_version(&major, &minor) != WLM_OK) skip(); /* tests/nvrtc reports that NVRTC is missing */
  HOLD(wlmi_program, program,
       wlmi_generator_emit(generator, "starts/prepares=right", &spec, &device->info.limits, &program));
  WLM_FREED GET(void *, cubin, wlmi_nvrtc_compile(program.source, "emitted", 90, 0, &cubin, &size, NULL));
}

static int check_past(const void *user) {
  (void)user;
  return check("starts/prepares=past", 1) != WLM_OK;
}

TEST(writes_past_prepared_memory_are_found) {
  WLM_FREED char *said = NULL;
  assert_int_not_equal(test_in_child(check_past, NULL, &said), 0);
  assert_contains(said, "heap-buffer-overflow");
}

TEST(unprepared_blocks_are_found) { assert_status(WLM_ERR_MISMATCH, check("starts/prepares=part", 1)); }

TEST(kept_values_are_found) { assert_status(WLM_ERR_MISMATCH, check("starts/prepares=values", 1)); }

GROUP(begin, end)

int main(void) {
  omp_set_num_threads(1);
  return test_run();
}
