/* The cuda device with a fake driver (tests/fake_cuda): its calls of the driver, its handling of errors, and that it
 * releases everything. Each test is a separate process, because the driver is opened once. */
#include "core/base/file.h"
#include "fake_cuda/fake_process.h"
#include "runtime/context_state.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/devices.h"
#include "runtime/dispatch/plan.h"
#include "runtime/load.h"
#include "runtime/sort_device.h"
#include "runtime/stats_device.h"
#include "support/bare_plan.h"
#include "support/folder.h"
#include "support/test.h"

static wlmi_device *open_fake(void) {
  wlmi_device *device;
  CHECK(wlmi_device_open("cuda", &device) == WLM_OK);
  return device;
}

static void expect_no_device(const char *reason) {
  OWNED(wlmi_device) *device = NULL;
  CHECK(wlmi_device_open("cuda:0", &device) == WLM_ERR_NO_DEVICE);
  CHECK(!device);
  DETAIL(reason);
  CHECK(wlmi_device_open(NULL, &device) == WLM_OK); /* opens the host device instead */
  CHECK(!strcmp(device->info.kind, "host"));
}

TEST_IN(in_a_process, old_by_functions) {
  fake->no_functions = 1;
  expect_no_device("older than CUDA 12.0");
}

TEST_IN(in_a_process, old_by_version) {
  fake->version = 11080;
  expect_no_device("older than CUDA 12.0");
}

TEST_IN(in_a_process, no_gpu) {
  fake->devices = 0;
  expect_no_device("no GPU");
}

TEST_IN(in_a_process, init_fails) {
  fake->init_result = 100;
  expect_no_device("cuInit: CUDA_ERROR_FAKE (as the fake driver says)");
}

TEST_IN(in_a_process, describes_itself) {
  wlmi_device *device = open_fake(), *other;
  CHECK(!strcmp(device->info.kind, "cuda") && !strcmp(device->info.name, "Fake GPU"));
  CHECK(!strcmp(device->info.arch, "sm_90") && device->info.limits.arch == 90);
  CHECK(!strncmp(device->info.driver, "CUDA 13.0", 9));
  CHECK(device->info.limits.shared_bytes == 227 << 10 && device->info.memory_bytes == 64 << 20);
  CHECK(fake->retained == 1);
  CHECK(wlmi_device_open("cuda:1", &other) == WLM_ERR_NO_DEVICE);
  DETAIL("sees 1 GPU, from cuda:0 on");
  CHECK(wlmi_device_open("cuda:", &other) == WLM_ERR_INVALID_ARGUMENT);
  CHECK(wlmi_device_open("cuda:0x", &other) == WLM_ERR_INVALID_ARGUMENT);
  CHECK(wlmi_device_open("gpu", &other) == WLM_ERR_INVALID_ARGUMENT);
  device->ops->close(device);
}

/* Finds the path of NVRTC among the files that this process has mapped. */
static int mapped_nvrtc(char path[512]) {
  char line[1024];
  FILE *maps = fopen("/proc/self/maps", "r");
  int found = 0;
  while (maps && !found && fgets(line, sizeof line, maps))
    found = strstr(line, "libnvrtc.so") && sscanf(strchr(line, '/'), "%511[^\n]", path) == 1;
  if (maps) fclose(maps);
  return found;
}

/* Measurements store the version of NVRTC; keys of compiled kernels also contain the identity of the library file. */
TEST_IN(in_a_process, identifies_its_compiler) {
  OWNED(wlmi_device) *device = open_fake();
  char path[512], expected[WLMI_HASH_HEX] = "";
  if (mapped_nvrtc(path)) {
    wlmi_file_identity(path, expected);
    CHECK(*expected && !strncmp(device->info.compiler, "nvrtc 1", 7) && !strstr(device->info.compiler, expected));
  }
  CHECK(!strcmp(device->info.compiler_file, expected));
}

TEST_IN(in_a_process, moves_memory) {
  OWNED(wlmi_device) *device = open_fake();
  char in[64], out[64];
  void *memory;
  memset(in, 7, sizeof in);
  CHECK(device->ops->allocate(device, sizeof in, &memory) == WLM_OK);
  CHECK(device->ops->copy_in(device, memory, in, sizeof in) == WLM_OK);
  CHECK(device->ops->fill(device, NULL, memory, 9, 3) == WLM_OK);
  CHECK(device->ops->copy_out(device, NULL, out, memory, sizeof out) == WLM_OK);
  CHECK(out[0] == 9 && out[2] == 9 && out[3] == 7 && out[63] == 7);
  CHECK(device->ops->copy_out(device, NULL, NULL, NULL, 0) == WLM_OK);
  CHECK(device->ops->synchronize(device, NULL) == WLM_OK);
  device->ops->release(device, memory);
  device->ops->release(device, NULL);
  CHECK(device->ops->allocate(device, 65 << 20, &memory) == WLM_ERR_OUT_OF_MEMORY);
  CHECK(!memory);
  DETAIL("68157440 bytes on Fake GPU: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
}

/* Any address serves as a stream for the fake driver. */
static void *const some_stream = &(char[64]){0};

TEST_IN(in_a_process, pools_memory_in_a_streams_order) {
  OWNED(wlmi_device) *device = open_fake();
  void *memory, *none;
  CHECK(fake->pools == 1 && fake->kept);
  CHECK(device->ops->allocate_on(device, some_stream, 1000, &memory) == WLM_OK && memory);
  CHECK(fake->pooled == 1 && !fake->memories && fake->stream == some_stream);
  CHECK(device->ops->allocate_on(device, NULL, 65 << 20, &none) == WLM_ERR_OUT_OF_MEMORY && !none);
  DETAIL("68157440 bytes on Fake GPU: cuMemAllocFromPoolAsync: CUDA_ERROR_OUT_OF_MEMORY");
  device->ops->release_on(device, some_stream, memory, 1000);
  device->ops->release_on(device, some_stream, NULL, 0);
  CHECK(!fake->pooled && fake->stream == some_stream);
  CHECK(device->ops->allocate_on(device, some_stream, 0, &memory) == WLM_OK && memory);
  device->ops->release_on(device, some_stream, memory, 0);
  CHECK(!fake->waits && !fake->all_wait);
}

TEST_IN(in_a_process, works_without_pools) {
  void *memory;
  fake->no_pools = 1;
  OWNED(wlmi_device) *device = open_fake();
  CHECK(!fake->pools);
  CHECK(device->ops->allocate_on(device, NULL, 1000, &memory) == WLM_OK && fake->memories == 1);
  CHECK(!fake->waits);
  /* the memory may be released only after the stream's work has ended */
  device->ops->release_on(device, NULL, memory, 1000);
  CHECK(fake->waits == 1 && !fake->all_wait && !fake->memories);
}

TEST_IN(in_a_process, copies_in_a_streams_order) {
  OWNED(wlmi_device) *device = open_fake();
  char out[8] = {0};
  void *memory;
  CHECK(device->ops->allocate_on(device, NULL, 8, &memory) == WLM_OK);
  CHECK(device->ops->fill(device, some_stream, memory, 5, 8) == WLM_OK);
  CHECK(fake->filled == some_stream && !fake->waits);
  fake->filled = NULL;
  CHECK(device->ops->wait(device, NULL) == WLM_OK && fake->waits == 1 && !fake->waited && !fake->all_wait);
  CHECK(device->ops->copy_out(device, NULL, out, memory, 8) == WLM_OK && out[0] == 5 && out[7] == 5);
  CHECK(fake->waits == 2 && !fake->waited && !fake->all_wait);
  CHECK(device->ops->copy_out(device, some_stream, NULL, NULL, 0) == WLM_OK);
  CHECK(device->ops->fill(device, some_stream, NULL, 0, 0) == WLM_OK && !fake->filled && fake->waits == 2);
  CHECK(device->ops->synchronize(device, NULL) == WLM_OK && fake->all_wait == 1);
  device->ops->release_on(device, NULL, memory, 8);
}

/* ---- the caller's allocator ------------------------------------------------------------------------------- */

typedef struct hooks_seen {
  int live, device, full;
  size_t size;
  void *stream;
} hooks_seen;

static void *hook_allocate(void *user, int device, size_t size, void *stream) {
  hooks_seen *seen = user;
  if (seen->full) return NULL;
  *seen = (hooks_seen){seen->live + 1, device, 0, size, stream};
  return malloc(size);
}

static void hook_release(void *user, int device, void *memory, size_t size, void *stream) {
  hooks_seen *seen = user;
  *seen = (hooks_seen){seen->live - 1, device, seen->full, size, stream};
  free(memory);
}

TEST_IN(in_a_process, takes_the_callers_memory) {
  hooks_seen seen = {0};
  void *memory[3], *none;
  fake->devices = 2;
  wlm_set_device_allocator(&(wlm_device_allocator){hook_allocate, hook_release, &seen});
  wlmi_device *device;
  CHECK(wlmi_device_open("cuda:1", &device) == WLM_OK);
  CHECK(device->ops->allocate_on(device, some_stream, 100, &memory[0]) == WLM_OK);
  CHECK(seen.live == 1 && seen.device == 1 && seen.size == 100 && seen.stream == some_stream && !fake->waits);
  CHECK(device->ops->allocate(device, 200, &memory[1]) == WLM_OK);
  CHECK(seen.live == 2 && seen.size == 200 && !seen.stream && fake->waits == 1 && !fake->waited);
  CHECK(device->ops->allocate(device, 0, &memory[2]) == WLM_OK && seen.live == 3 && seen.size == 1);
  device->ops->release(device, memory[1]); /* any stream may have used this memory */
  CHECK(seen.live == 2 && seen.size == 200 && seen.device == 1 && fake->all_wait == 1);
  device->ops->release_on(device, some_stream, memory[0], 100);
  CHECK(seen.live == 1 && seen.size == 100 && seen.stream == some_stream && fake->all_wait == 1);
  device->ops->release(device, memory[2]);
  device->ops->release(device, NULL);
  device->ops->release_on(device, some_stream, NULL, 5);
  CHECK(!seen.live && seen.size == 1);
  seen.full = 1;
  CHECK(device->ops->allocate(device, 7, &none) == WLM_ERR_OUT_OF_MEMORY && !none);
  DETAIL("7 bytes on Fake GPU: the device allocator has no room");
  CHECK(device->ops->allocate_on(device, NULL, 8, &none) == WLM_ERR_OUT_OF_MEMORY && !none);
  CHECK(!fake->allocations); /* nothing came from the driver */
  device->ops->close(device);

  wlm_set_device_allocator(NULL);
  CHECK(wlmi_device_open("cuda:0", &device) == WLM_OK);
  CHECK(device->ops->allocate_on(device, NULL, 8, &memory[0]) == WLM_OK && fake->pooled == 1);
  device->ops->release_on(device, NULL, memory[0], 8);
  device->ops->close(device);
}

TEST_IN(in_a_process, asks_the_contexts_allocator_first) {
  hooks_seen ours = {0}, everyones = {0};
  const wlm_device_allocator all = {hook_allocate, hook_release, &everyones};
  wlm_context *own, *other;
  void *memory;
  wlm_context_options options = BARE_OPTIONS(.device = "cuda:0");
  wlm_set_device_allocator(&all);
  CHECK(wlm_context_create(&options, &other) == WLM_OK);
  wlm_device_allocator given = {hook_allocate, hook_release, &ours};
  options.device_allocator = &given;
  CHECK(wlm_context_create(&options, &own) == WLM_OK);
  given = (wlm_device_allocator){0}; /* the context has copied the struct */
  wlmi_device *device = own->device;
  CHECK(device->ops->allocate(device, 100, &memory) == WLM_OK && ours.live == 1 && ours.size == 100);
  device->ops->release(device, memory);
  CHECK(device->ops->allocate_on(device, some_stream, 200, &memory) == WLM_OK && ours.live == 1 && ours.size == 200);
  device->ops->release_on(device, some_stream, memory, 200);
  CHECK(!ours.live && !everyones.size);
  device = other->device;
  CHECK(device->ops->allocate_on(device, some_stream, 300, &memory) == WLM_OK && everyones.size == 300);
  device->ops->release_on(device, some_stream, memory, 300);
  CHECK(!fake->allocations && ours.size == 200);
  wlm_context_destroy(own);
  CHECK(wlm_context_create(&options, &own) == WLM_ERR_INVALID_ARGUMENT);
  DETAIL("device_allocator.allocate is NULL");
  wlm_context_destroy(other);
  wlm_set_device_allocator(NULL);
}

static const wlmi_program program = {
    .variant = "fake/x=1",
    .pass_count = 2,
    .passes = {{.kernel = FAKE_CUDA_KERNEL, .threads = 64}, {.kernel = FAKE_CUDA_KERNEL, .shared_bytes = 100 << 10}},
};

TEST_IN(in_a_process, loads_and_launches) {
  OWNED(wlmi_device) *device = open_fake();
  void *kernels[WLMI_MAX_PASSES];
  wlmi_module *module;
  CHECK(device->ops->load(device, &program, FAKE_CUDA_IMAGE, 5, kernels, &module) == WLM_OK);
  CHECK(fake->shared_limit == 100 << 10 && fake->functions_loaded == 2);
  CHECK(fake->carveout ==
        15); /* percent of 228 KB: 8 blocks of the first pass with 3 KB each, and 1 KB each for the driver */
  wlmi_launch launch = {.kernel = kernels[1], .grid = {7, 8, 9}, .threads = 128, .shared_bytes = 99 << 10};
  struct wlm_args args = {.rows = 11, .beta = 2.5, .sample_width = 13};
  CHECK(device->ops->launch(device, &launch, &args, NULL) == WLM_OK);
  CHECK(!memcmp(&args, &fake->args, sizeof args) && !memcmp(fake->grid, launch.grid, sizeof launch.grid));
  CHECK(fake->threads == 128 && fake->shared_bytes == 99 << 10 && fake->launches == 1 && !fake->stream &&
        !fake->overlaps);
  launch.dependent = 1; /* the fake GPU is an sm_90, which can overlap launches */
  CHECK(device->ops->launch(device, &launch, &args, NULL) == WLM_OK && fake->overlaps);
  launch.threads = 4096;
  CHECK(device->ops->launch(device, &launch, &args, NULL) == WLM_ERR_DEVICE);
  DETAIL("grid 7 x 8 x 9, 4096 threads");
  device->ops->unload(device, module);
  device->ops->unload(device, NULL);
}

TEST_IN(in_a_process, transposes_without_waiting) {
  OWNED(wlmi_device) *device = open_fake();
  void *memory, *kernels[WLMI_MAX_PASSES] = {&memory, &memory, &memory}; /* the fake driver does not use the kernels */
  wlmi_transpose_layout layout;
  wlm_csr csr = CSR(.rows = 500, .cols = 65000, .nnz = 9000);
  CHECK(wlmi_transpose_layout_of(&csr, &layout) == WLM_OK);
  CHECK(device->ops->allocate_on(device, some_stream, layout.size, &memory) == WLM_OK);
  char *at = memory;
  const int allocations = fake->allocations;
  CHECK(wlmi_transpose_enqueue(device, kernels, &csr, at + layout.rowptr, at + layout.colind, at + layout.order,
                               at + layout.scratch, some_stream) == WLM_OK);
  CHECK(fake->launches == 5 && fake->stream == some_stream); /* two rounds with two launches each, and the last pass */
  CHECK(!fake->waits && !fake->all_wait && fake->allocations == allocations);
  csr.nnz = 0;
  CHECK(wlmi_transpose_enqueue(device, kernels, &csr, at, at, at, at, some_stream) == WLM_OK);
  CHECK(fake->launches == 6 && fake->overlaps); /* only the last pass */
  device->ops->release_on(device, some_stream, memory, layout.size);
}

TEST_IN(in_a_process, sorts_without_waiting) {
  OWNED(wlmi_device) *device = open_fake();
  void *memory, *kernels[WLMI_MAX_PASSES] = {&memory, &memory, &memory};
  size_t size;
  wlm_coo coo = COO(.rows = 65536 /* one more row for edges outside of the matrix, so indices have three digits */,
                    .cols = 500, .nnz = 9000, .stream = some_stream);
  CHECK(wlmi_coo_scratch_size(&coo, &size) == WLM_OK);
  CHECK(device->ops->allocate_on(device, some_stream, size, &memory) == WLM_OK);
  const int allocations = fake->allocations;
  CHECK(wlmi_coo_enqueue(device, kernels, &coo, memory) == WLM_OK);
  CHECK(fake->launches == 7 && fake->stream == some_stream && fake->overlaps);
  coo.rows = 65535;
  CHECK(wlmi_coo_enqueue(device, kernels, &coo, memory) == WLM_OK);
  CHECK(fake->launches == 12);
  coo.sorted = 1;
  CHECK(wlmi_coo_scratch_size(&coo, &size) == WLM_OK && !size);
  CHECK(wlmi_coo_enqueue(device, kernels, &coo, NULL) == WLM_OK);
  CHECK(fake->launches == 13);
  CHECK(!fake->waits && !fake->all_wait && fake->allocations == allocations);
  device->ops->release_on(device, some_stream, memory, 0);
}

/* The fake kernels write nothing, so the result says that rowptr decreases. */
TEST_IN(in_a_process, measures_on_a_stream) {
  OWNED(wlmi_device) *device = open_fake();
  void *scratch, *kernels[WLMI_MAX_PASSES] = {&scratch, &scratch};
  wlm_csr csr = CSR(.rows = 500, .nnz = 9000);
  wlm_stats stats;
  CHECK(device->ops->allocate_on(device, some_stream, wlmi_stats_scratch_size(&csr), &scratch) == WLM_OK);
  const int allocations = fake->allocations;
  CHECK(wlmi_stats_measure(device, kernels, &csr, some_stream, scratch, &stats) == WLM_ERR_INVALID_ARGUMENT);
  CHECK(fake->launches == 1 && fake->stream == some_stream && fake->filled == some_stream);
  CHECK(fake->waits == 1 && fake->waited == some_stream && !fake->all_wait && fake->allocations == allocations);
  device->ops->release_on(device, some_stream, scratch, wlmi_stats_scratch_size(&csr));
}

TEST_IN(in_a_process, reports_what_kernels_need) {
  OWNED(wlmi_device) *device = open_fake();
  void *kernels[WLMI_MAX_PASSES];
  wlmi_module *module;
  wlmi_kernel_facts facts;
  fake->local_bytes = 48;
  CHECK(device->ops->load(device, &program, FAKE_CUDA_IMAGE, 5, kernels, &module) == WLM_OK);
  wlmi_launch launch = {.kernel = kernels[0], .threads = 128, .shared_bytes = 9 << 10};
  CHECK(device->ops->kernel_facts(device, &launch, &facts) == WLM_OK);
  CHECK(facts.registers == 40 && facts.local_bytes == 48 && facts.shared_bytes == 12 << 10 && facts.blocks == 8);
  launch.threads = 2048;
  CHECK(device->ops->kernel_facts(device, &launch, &facts) == WLM_OK && facts.blocks == 0);
  device->ops->unload(device, module);
}

/* The program states 3 blocks per multiprocessor, but the driver reports 8: so the work of 13 blocks fits into one
 * wave. */
TEST_IN(in_a_process, plans_by_the_blocks_that_fit) {
  static const wlmi_program stated = {
      .variant = "fake/x=1",
      .pass_count = 1,
      .passes = {{.kernel = FAKE_CUDA_KERNEL,
                  .threads = 64,
                  .units = WLMI_UNITS_ROWS_NNZ,
                  .units_per_block = 10,
                  .columns_per_block = 8,
                  .wave = 12,
                  .processors = 4}},
  };
  OWNED(wlmi_device) *device = open_fake();
  void *kernels[WLMI_MAX_PASSES];
  wlmi_module *module;
  wlm_problem problem = PROBLEM(.n = 8);
  wlm_csr csr = CSR(.rows = 1, .nnz = 120);
  wlmi_spec spec;
  wlm_plan plan = {0};
  CHECK(wlmi_spec_make(&problem, &csr, &spec) == WLM_OK);
  CHECK(device->ops->load(device, &stated, FAKE_CUDA_IMAGE, 5, kernels, &module) == WLM_OK);
  CHECK(bare_plan_fill(&plan, device, &stated, kernels, &csr, &spec) == WLM_OK);
  CHECK(plan.bound.args.blocks == 16 && plan.bound.args.units == 8 && plan.bound.launches[0].grid[0] == 16);
  device->ops->unload(device, module);
}

/* A program that NVRTC can compile and whose kernel the fake driver has. */
static wlmi_program compiled = {
    .source = "extern \"C\" __global__ void " FAKE_CUDA_KERNEL "() {}",
    .variant = "fake/x=1",
    .pass_count = 1,
    .passes = {{.kernel = FAKE_CUDA_KERNEL, .threads = 64}},
};

static int has_nvrtc(void) {
  int major, minor;
  return wlmi_nvrtc_version(&major, &minor) == WLM_OK;
}

TEST_IN(in_a_process, compiles_for_a_known_gpu) {
  if (!has_nvrtc()) return;
  OWNED(wlmi_device) *device = open_fake();
  void *image, *kernels[WLMI_MAX_PASSES];
  wlmi_module *module;
  size_t size;
  CHECK(device->info.limits.arch == 90 && wlmi_nvrtc_arch(90) == 90);
  CHECK(device->ops->compile(device, &compiled, &image, &size) == WLM_OK);
  CHECK(size > 4 && !memcmp(image, "\177ELF", 4));
  CHECK(device->ops->load(device, &compiled, image, size, kernels, &module) == WLM_OK && !fake->loaded_arch);
  device->ops->unload(device, module);
  wlmi_free(image);
}

/* NVRTC does not know sm_200: the device keeps this name, and kernels are emitted and compiled for the newest
 * architecture that NVRTC knows. */
TEST_IN(in_a_process, compiles_for_a_newer_gpu) {
  if (!has_nvrtc()) return;
  char target[64];
  void *image, *kernels[WLMI_MAX_PASSES];
  wlmi_module *module;
  size_t size;
  fake->arch = 200;
  OWNED(wlmi_device) *device = open_fake();
  const int newest = device->info.limits.arch;
  CHECK(!strcmp(device->info.arch, "sm_200") && newest >= 90 && newest < 200 && newest == wlmi_nvrtc_arch(1000));
  CHECK(device->ops->compile(device, &compiled, &image, &size) == WLM_OK);
  snprintf(target, sizeof target, "\n.target sm_%d\n", newest);
  CHECK(size && strlen(image) + 1 == size && strstr(image, target));
  CHECK(device->ops->load(device, &compiled, image, size, kernels, &module) == WLM_OK && fake->loaded_arch == newest);
  device->ops->unload(device, module);
  wlmi_free(image);
}

TEST_IN(in_a_process, does_not_compile_for_older_gpus) {
  if (!has_nvrtc()) return;
  void *image;
  size_t size;
  fake->arch = 20;
  OWNED(wlmi_device) *device = open_fake();
  CHECK(device->info.limits.arch == 20);
  CHECK(device->ops->compile(device, &compiled, &image, &size) == WLM_ERR_NO_COMPILER && !image);
  DETAIL("cannot compile for sm_20");
}

static wlm_context *open_context(const char *cache) {
  wlm_context_options options = BARE_OPTIONS(.device = "cuda:0", .kernel_cache = cache);
  wlm_context *context;
  CHECK(wlm_context_create(&options, &context) == WLM_OK);
  return context;
}

static wlm_status refuse(wlmi_device *device, const wlmi_program *unused, void **image, size_t *size) {
  (void)device, (void)unused, (void)image, (void)size;
  return wlmi_fail(WLM_ERR_NO_COMPILER, "not in the kernel cache");
}

/* A second context finds the PTX of the first one in the kernel cache. */
TEST_IN(in_a_process, keeps_ptx_in_the_cache) {
  if (!has_nvrtc()) return;
  test_folder place;
  void *kernels[WLMI_MAX_PASSES];
  const wlm_csr types = WLM_CSR_INIT;
  folder_make(&place);
  fake->arch = 200;
  fake->any_code = 1;
  for (int cached = 0; cached < 2; cached++) {
    OWNED(wlm_context) *context = open_context(folder_file(&place, "kernels.db"));
    wlmi_device_ops ops = *context->device->ops;
    if (cached) ops.compile = refuse;
    context->device->ops = &ops;
    fake->loaded_arch = 0;
    CHECK(wlmi_load_helper(context, WLMI_HELPER_TRANSPOSE, &types, kernels) == WLM_OK);
    CHECK(fake->loaded_arch == wlmi_nvrtc_arch(200));
  }
  folder_remove(&place);
}

/* Without a compiler the host converts copies of the arrays. */
TEST_IN(in_a_process, converts_on_the_host) {
  static const int32_t row[] = {2, 0, 2, 9}, col[] = {1, 0, 0, 1}, rowptr[] = {0, 1, 1, 3};
  static const int64_t perm[] = {1, 0, 2, 3};
  OWNED(wlm_context) *context = open_context("");
  wlmi_device *device = context->device;
  wlmi_device_ops ops = *device->ops;
  void *memory[5];
  char found[sizeof perm];
  ops.compile = refuse;
  device->ops = &ops;
  for (int i = 0; i < 5; i++) CHECK(ops.allocate(device, sizeof perm, &memory[i]) == WLM_OK);
  CHECK(ops.copy_in(device, memory[0], row, sizeof row) == WLM_OK);
  CHECK(ops.copy_in(device, memory[1], col, sizeof col) == WLM_OK);
  wlm_coo coo = COO(.rows = 3, .cols = 2, .nnz = 4, .row = memory[0], .col = memory[1], .rowptr = memory[2],
                    .colind = memory[3], .perm = memory[4]);
  CHECK(wlm_csr_from_coo(context, &coo) == WLM_OK);
  CHECK(ops.copy_out(device, NULL, found, memory[2], sizeof rowptr) == WLM_OK && !memcmp(found, rowptr, sizeof rowptr));
  coo.rowptr_type = WLM_I64;
  coo.rows = 1; /* all edges except the second lie outside */
  CHECK(wlm_csr_from_coo(context, &coo) == WLM_OK);
  CHECK(ops.copy_out(device, NULL, found, memory[4], sizeof perm) == WLM_OK && !memcmp(found, perm, sizeof perm));
  for (int i = 0; i < 5; i++) ops.release(device, memory[i]);
}

TEST_IN(in_a_process, refuses_bad_code) {
  OWNED(wlmi_device) *device = open_fake();
  void *kernels[WLMI_MAX_PASSES];
  wlmi_module *module;
  wlmi_program wrong = program;
  CHECK(device->ops->load(device, &program, "no image", 9, kernels, &module) == WLM_ERR_DEVICE);
  DETAIL("fake/x=1 cannot be loaded: line 3: not what a fake can read: cuModuleLoadDataEx");
  CHECK(!module);
  strcpy(wrong.passes[1].kernel, "wlm_nobody");
  CHECK(device->ops->load(device, &wrong, FAKE_CUDA_IMAGE, 5, kernels, &module) == WLM_ERR_DEVICE);
  DETAIL("fake/x=1: kernel 'wlm_nobody': cuModuleGetFunction");
  CHECK(!module && !fake->modules);
  wrong = program;
  wrong.passes[1].shared_bytes = 300 << 10;
  CHECK(device->ops->load(device, &wrong, FAKE_CUDA_IMAGE, 5, kernels, &module) == WLM_ERR_DEVICE);
  DETAIL("cuFuncSetAttribute");
}

typedef struct caller {
  wlmi_device *device;
  wlmi_launch launch;
  int calls, fail_at, wait_at;
} caller;

static wlm_status enqueue(void *user, void *stream) {
  caller *c = user;
  struct wlm_args args = {.n = ++c->calls};
  if (c->calls == c->fail_at) return wlmi_fail(WLM_ERR_INTERNAL, "call %d", c->calls);
  wlm_status status = c->calls == c->wait_at ? c->device->ops->synchronize(c->device, stream) : WLM_OK;
  return status == WLM_OK ? c->device->ops->launch(c->device, &c->launch, &args, stream) : status;
}

TEST_IN(in_a_process, times_by_a_graph) {
  OWNED(wlmi_device) *device = open_fake();
  void *kernels[WLMI_MAX_PASSES];
  wlmi_module *module;
  wlmi_timer *timer;
  double seconds = 0;
  CHECK(device->ops->load(device, &program, FAKE_CUDA_IMAGE, 5, kernels, &module) == WLM_OK);
  caller c = {.device = device, .launch = {.kernel = kernels[0], .grid = {1, 1, 1}, .threads = 64}};
  CHECK(device->ops->timer_create(device, enqueue, &c, 5, &timer) == WLM_OK);
  /* one direct call and five in the capture, on the timer's stream */
  CHECK(c.calls == 6 && fake->graphs == 0 && fake->stream);
  int before = fake->launches;
  CHECK(device->ops->timer_sample(timer, NULL, 0, &seconds) == WLM_OK);
  CHECK(c.calls == 6 && fake->launches == before + 10 && fake->args.n == 6);
  CHECK(seconds > 0.00249 && seconds < 0.00251);
  char flush[8] = "in L2"; /* cold caches: one replay, after a fill on the same stream */
  CHECK(device->ops->timer_sample(timer, flush, sizeof flush, &seconds) == WLM_OK);
  CHECK(fake->launches == before + 15 && fake->filled == fake->stream && !*flush && !flush[4]);
  device->ops->timer_destroy(timer);

  c.fail_at = 9;
  CHECK(device->ops->timer_create(device, enqueue, &c, 5, &timer) == WLM_ERR_INTERNAL && !timer);
  DETAIL("call 9");
  c.wait_at = c.calls + 3;
  CHECK(device->ops->timer_create(device, enqueue, &c, 5, &timer) == WLM_ERR_DEVICE && !timer);
  DETAIL("cuStreamSynchronize");
  c.fail_at = c.calls + 1;
  CHECK(device->ops->timer_create(device, enqueue, &c, 5, &timer) == WLM_ERR_INTERNAL && !timer);
  device->ops->unload(device, module);
}

/* Counts the calls that were captured. */
static wlm_status ask_capture(void *user, void *stream) {
  caller *c = user;
  c->calls += c->device->ops->is_captured(c->device, stream);
  return WLM_OK;
}

TEST_IN(in_a_process, detects_captures) {
  OWNED(wlmi_device) *device = open_fake();
  caller c = {.device = device};
  wlmi_timer *timer;
  CHECK(device->ops->timer_create(device, ask_capture, &c, 5, &timer) == WLM_OK);
  CHECK(c.calls == 5); /* without the direct call before the capture */
  device->ops->timer_destroy(timer);
  CHECK(!device->ops->is_captured(device, NULL));
  fake->implicit_capture = 1;
  CHECK(device->ops->is_captured(device, NULL));
}

TEST_IN(in_a_process, times_without_waiting) {
  OWNED(wlmi_device) *device = open_fake();
  wlmi_watch *watch;
  int done = 1;
  double seconds = 0;
  CHECK(device->ops->watch_create(device, &watch) == WLM_OK && fake->events == 2);
  CHECK(device->ops->watch_poll(watch, &done, &seconds) == WLM_ERR_DEVICE && !done);
  CHECK(device->ops->watch_start(watch, NULL) == WLM_OK && device->ops->watch_stop(watch, NULL) == WLM_OK);
  fake->busy = 1;
  CHECK(device->ops->watch_poll(watch, &done, &seconds) == WLM_OK && !done);
  fake->busy = 0;
  CHECK(device->ops->watch_poll(watch, &done, &seconds) == WLM_OK && done && seconds > 0.00249 && seconds < 0.00251);
  device->ops->watch_destroy(watch);
  device->ops->watch_destroy(NULL);
}
