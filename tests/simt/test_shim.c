/* Tests the shim: correct kernels compute what CUDA computes, and each kind of error that it detects ends the process
 * with a message that names it. Failing kernels run in a child process. */
#include <omp.h>
#include <unistd.h>

#include "simt/shim/simt_device.h"
#include "support/db_fixture.h"
#include "support/kernel_check.h"
#include "support/parallel.h"
#include "support/test.h"

static wlmi_device *device;

FIXTURE(open_device) { return simt_device_open(&device) != WLM_OK; }
FIXTURE(close_device) {
  device->ops->close(device);
  return 0;
}

/* ---- small kernels --------------------------------------------------------------------------------- */

static const char head[] =
    "#include \"" WLM_SOURCE_DIR
    "/templates/prelude/args.h\"\n"
    "__global__ void k(const struct wlm_args args) {\n"
    "  int *c = (int *)args.c; const int *b = (const int *)args.b; const int i = threadIdx.x, lane = i % 32;\n"
    "#line 1 \"small\"\n";

typedef struct small {
  const char *body;
  unsigned int blocks, threads, shared_bytes;
} small;

/* Runs a small kernel; b and c have exactly `n` elements. */
static wlm_status run_small(const small *s, int64_t n, const int *b, int *c) {
  wlm_status status = WLM_OK;
  HELD(wlmi_text) source = {0};
  wlmi_program program = {.pass_count = 1, .passes = {{.kernel = "k"}}};
  wlmi_module *module = NULL;
  void *kernels[WLMI_MAX_PASSES], *image = NULL;
  size_t size;
  wlmi_text_printf(&source, "%s%s }\n", head, s->body);
  program.source = source.data;
  WLM_TRY(device->ops->compile(device, &program, &image, &size));
  WLM_TRY(device->ops->load(device, &program, image, size, kernels, &module));
  struct wlm_args args = {.n = n, .b = b, .c = c};
  wlmi_launch launch = {
      .kernel = kernels[0], .grid = {s->blocks, 1, 1}, .threads = s->threads, .shared_bytes = s->shared_bytes};
  WLM_TRY(device->ops->launch(device, &launch, &args, NULL));
done:
  if (module) device->ops->unload(device, module);
  wlmi_free(image);
  return status;
}

TEST(test_threads_and_shuffles) {
  enum { THREADS = 64 };
  int c[9 * THREADS];
  const small s = {
      "c[i] = __shfl_sync(0xffffffffu, i, 5);\n"
      "c[64 + i] = __shfl_sync(0xffffffffu, i, 21, 16);\n"
      "c[128 + i] = __shfl_up_sync(0xffffffffu, i, 3);\n"
      "c[192 + i] = __shfl_down_sync(0xffffffffu, i, 3, 8);\n"
      "c[256 + i] = __shfl_xor_sync(0xffffffffu, i, 9);\n"
      "c[320 + i] = (int)__ballot_sync(0xffffffffu, i % 3 == 0);\n"
      "c[384 + i] = __any_sync(0xffffffffu, i == 40) + 2 * __all_sync(0xffffffffu, i < 33);\n"
      "double sum = i + 0.5;\n"
      "for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);\n"
      "c[448 + i] = (int)(2 * sum);\n"
      "c[512 + i] = -1;\n"
      "if (lane < 8) c[512 + i] = __shfl_down_sync(0xffu, lane, 1, 8);\n",
      1, THREADS, 0};
  assert_status(WLM_OK, run_small(&s, 9 * THREADS, NULL, c));
  for (int i = 0; i < THREADS; i++) {
    int lane = i % 32, warp = i / 32 * 32;
    assert_int_equal(c[i], warp + 5);
    assert_int_equal(c[64 + i], i / 16 * 16 + 5);
    assert_int_equal(c[128 + i], lane < 3 ? i : i - 3);
    assert_int_equal(c[192 + i], i % 8 < 5 ? i + 3 : i);
    assert_int_equal(c[256 + i], i ^ 9);
    unsigned int votes = 0;
    for (int j = 0; j < 32; j++) votes |= (unsigned int)((warp + j) % 3 == 0) << j;
    assert_int_equal((unsigned int)c[320 + i], votes);
    assert_int_equal(c[384 + i], (warp == 32) + 2 * (warp == 0));
    assert_int_equal(c[448 + i], 2 * (496 + 32 * warp + 16));
    assert_int_equal(c[512 + i], lane >= 8 ? -1 : lane == 7 ? 7 : lane + 1);
  }
}

TEST(test_blocks_and_atomics) {
  int c[8] = {0, 1000, -1000, 7, 0, 0, 0, 0};
  const small s = {
      "atomicAdd(&c[0], i + (int)blockIdx.x);\n"
      "atomicMin(&c[1], i);\n"
      "atomicMax(&c[2], i + (int)(blockDim.x * gridDim.x));\n"
      "atomicCAS(&c[3], 7, 8);\n"
      "atomicExch(&c[4], 5);\n"
      "__shared__ int cells[96];\n"
      "if (cells[i] != 0x7fffffff) c[5] = 1;\n" /* each block begins with the pattern in shared memory */
      "WLM_DYNAMIC_SHARED(int, more);\n"
      "if (more[i] != 0x7fffffff) c[6] = 1;\n"
      "cells[i] = more[i] = i;\n"
      "__syncthreads();\n"
      "atomicAdd(&c[7], cells[95 - i] - more[95 - i]);\n",
      5, 96, 96 * sizeof(int)};
  assert_status(WLM_OK, run_small(&s, 8, NULL, c));
  assert_int_equal(c[0], 5 * (96 * 95 / 2) + 96 * 10);
  assert_int_equal(c[1], 0);
  assert_int_equal(c[2], 95 + 96 * 5);
  assert_int_equal(c[3], 8);
  assert_int_equal(c[4], 5);
  for (int i = 5; i < 8; i++) assert_int_equal(c[i], 0);
}

/* Parts of a warp may synchronise, in any nesting. */
TEST(test_partial_masks) {
  int c[32] = {0};
  const small s = {
      "__shared__ int cell[32];\n"
      "cell[lane] = lane;\n"
      "if (lane < 16) { __syncwarp(0xffffu);\n cell[lane] += cell[lane ^ 1] * 0 + 100; __syncwarp(0xffffu); }\n"
      "else if (lane < 20) __syncwarp(0xf0000u);\n"
      "__syncwarp();\n"
      "c[lane] = cell[31 - lane];\n",
      1, 32, 0};
  assert_status(WLM_OK, run_small(&s, 32, NULL, c));
  for (int i = 0; i < 32; i++) assert_int_equal(c[i], 31 - i < 16 ? 131 - i : 31 - i);
}

TEST(test_order_follows_the_seed) {
  enum { THREADS = 128, ALL = 1 + 3 * THREADS };
  int c[3][ALL];
  const small s = {"c[1 + blockIdx.x * 128 + i] = atomicAdd(&c[0], 1);\n", 3, THREADS, 0};
  const uint64_t seeds[] = {1, 2, 1};
  for (int run = 0; run < 3; run++) {
    c[run][0] = 0;
    simt_device_seed(device, seeds[run]);
    assert_status(WLM_OK, run_small(&s, ALL, NULL, c[run]));
    assert_int_equal(c[run][0], 3 * THREADS);
  }
  assert_memory_equal(c[0], c[2], sizeof c[0]);
  assert_memory_not_equal(c[0], c[1], sizeof c[0]);
}

/* ---- errors that the shim detects -------------------------------------------------------------------- */

static int run_mistake(const void *user) {
  enum { N = 64 };
  FREED int *b = calloc(N, sizeof *b), *c = calloc(N, sizeof *c);
  wlm_status status = run_small(user, N, b, c);
  if (status != WLM_OK) fprintf(stderr, "%s\n", wlm_error_detail());
  return 0; /* reached only if the error was not detected */
}

TEST(test_mistakes_are_caught) {
  static const struct {
    small kernel;
    const char *message;
  } mistakes[] = {
      {{"__shared__ int cell[32];\nint *volatile p = cell;\np[args.n / 2 + lane - 31] = 1;\nc[lane] = p[0];\n", 1, 32,
        0},
       "global-buffer-overflow"},
      {{"__shared__ int cell[32];\ncell[args.n / 2 + lane - 31] = 1;\n", 1, 32, 0}, "small:2:"},
      {{"WLM_DYNAMIC_SHARED(int, cell);\ncell[lane + 1] = 1;\n", 1, 32, 128}, "heap-buffer-overflow"},
      {{"c[lane] = b[args.n - 31 + lane];\n", 1, 32, 0}, "heap-buffer-overflow"},
      {{"c[args.n - 31 + lane] = 1;\n", 1, 32, 0}, "heap-buffer-overflow"},
      {{"c[lane] = lane + 0x7fffffff;\n", 1, 32, 0}, "signed integer overflow"},
      {{"if (lane == 3) return;\n__syncwarp();\n", 1, 32, 0}, "simt: small:2: __syncwarp: "},
      {{"if (lane == 3) return;\n__syncwarp();\n", 1, 32, 0}, "waits for thread 3, which has returned"},
      {{"__syncwarp();\n", 1, 24, 0}, "waits for thread 24, which has returned"},
      {{"if (lane < 16) __syncwarp();\nelse\n__syncwarp();\n", 1, 32, 0}, "which waits in __syncwarp at small:"},
      {{"if (lane == 9)\n__syncthreads();\n__syncwarp();\n", 1, 32, 0}, "which waits in __sync"},
      {{"if (i >= 32) return;\n__syncthreads();\n", 1, 64, 0}, "simt: small:2: __syncthreads: "},
      {{"if (i < 32)\n__syncthreads();\nelse\n__syncthreads();\n", 1, 64, 0}, "which waits in __syncthreads at small:"},
      {{"__syncwarp(0xfffffffeu);\n", 1, 32, 0}, "lane 0 is not in its own mask 0xfffffffe"},
      {{"if (lane < 16)\nc[lane] = __shfl_sync(0xffffu, lane, 20);\n", 1, 32, 0}, "simt: small:2: __shfl_sync: lane"},
      {{"c[lane] = __shfl_down_sync(0xffffffffu, lane, 1, 12);\n", 1, 32, 0}, "the width 12 is no power of 2"},
  };
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    WLM_FREED char *said = NULL;
    int code = test_in_child(run_mistake, &mistakes[i].kernel, &said);
    if (code == 0 || !strstr(said, mistakes[i].message))
      fail_msg("mistake %zu: exit status %d, expected \"%s\" in: %s", i, code, mistakes[i].message, said);
  }
}

/* ---- emitted kernels without one of their barriers -------------------------------------------------- */

typedef struct edit {
  const char *variant, *barrier;
  int which; /* which barrier of the text is removed, from 0; -1 = none */
  wlm_sample sample;
} edit;

static void order(void *user, int run) {
  (void)user;
  simt_device_seed(device, (uint64_t)run + 1);
}

/* Overwrites the barrier of the line with blanks. */
static void take_out(char *source, const char *barrier, int which) {
  char *at = strstr(source, barrier);
  while (at && which-- > 0) at = strstr(at + 1, barrier);
  if (!at) {
    fprintf(stderr, "the text has no such %s\n", barrier);
    _exit(0);
  }
  memset(at, ' ', strlen(barrier));
}

static int run_edit(const void *user) {
  const edit *e = user;
  wlmi_generator *generator;
  wlmi_spec spec;
  wlmi_program program;
  omp_set_num_threads(1);
  wlm_problem problem = PROBLEM(.n = 40, .sampling.sample = e->sample, .sampling.width = 32);
  wlm_csr csr = CSR(.values = &csr);
  wlm_status status = wlmi_spec_make(&problem, &csr, &spec);
  if (status == WLM_OK) status = wlmi_generator_create(NULL, &generator);
  if (status == WLM_OK) status = wlmi_generator_emit(generator, e->variant, &spec, &device->info.limits, &program);
  if (status != WLM_OK) {
    fprintf(stderr, "%s\n", wlm_error_detail());
    return 0;
  }
  if (e->which >= 0) take_out(program.source, e->barrier, e->which);
  const kernel_check check = {device, &spec, 2, order, NULL, 1};
  status = kernel_check_program(&check, &program);
  if (status != WLM_OK) fprintf(stderr, "%s: %s\n", wlm_status_name(status), wlm_error_detail());
  return status == WLM_OK ? 77 : 1;
}

TEST(test_missing_barriers_are_caught) {
  static const struct {
    edit edit;
    const char *message;
  } edits[] = {
      {{"row_crc/cf=1,rows=4", "__syncwarp();", 0, WLM_SAMPLE_NONE}, "AddressSanitizer"},
      {{"row_crc/cf=1,rows=4", "__syncwarp();", 1, WLM_SAMPLE_NONE}, "WLM_ERR_MISMATCH"},
      {{"row_crc/cf=2,rows=8", "__syncwarp();", 1, WLM_SAMPLE_NONE}, "WLM_ERR_MISMATCH"},
      {{"row_sample/threads=64,rows=4,vector=1,batch=4", "__syncthreads();", 0, WLM_SAMPLE_BUCKET}, "AddressSanitizer"},
  };
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    char *said;
    edit whole = edits[i].edit;
    whole.which = -1;
    int code = test_in_child(run_edit, &whole, &said);
    if (code != 77) fail_msg("%s as emitted: exit status %d: %s", whole.variant, code, said);
    wlmi_free(said);
    code = test_in_child(run_edit, &edits[i].edit, &said);
    if (code == 0 || code == 77 || !strstr(said, edits[i].message))
      fail_msg("edit %zu: exit status %d, expected \"%s\" in: %s", i, code, edits[i].message, said);
    wlmi_free(said);
  }
}

GROUP(open_device, close_device)
