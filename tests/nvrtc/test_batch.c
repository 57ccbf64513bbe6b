/* Kernels of batches and of column-major arrays: some candidates of each family compile, use no more registers and
 * spill no more than family.lua allows, and copy no arguments to local memory, for several architectures, widths and
 * types. */
#include "runtime/cuda/nvrtc.h"
#include "support/emit_fixture.h"
#include "support/seed.h"
#include "support/test.h"

enum { STEPS = 3, ONE_IN = 3 }; /* candidates of each family; of these a run checks one in three */

static const struct problem {
  int64_t n;
  wlm_type type;
  wlm_reduce reduce;
  int transpose, arch, argmax;
  wlm_operation operation;
  int64_t batch;
  wlm_order order; /* of B and C */
} problems[] = {
    {32, WLM_F32, WLM_SUM, 0, 90, 0, WLM_SPMM, 64, 0},  {128, WLM_F32, WLM_SUM, 0, 90, 0, WLM_SPMM, 64, 0},
    {4, WLM_F32, WLM_MAX, 0, 90, 0, WLM_SPMM, 64, 0},   {64, WLM_F16, WLM_MEAN, 0, 90, 0, WLM_SPMM, 64, 0},
    {33, WLM_F64, WLM_SUM, 1, 90, 0, WLM_SPMM, 64, 0},  {32, WLM_F32, WLM_SUM, 0, 80, 0, WLM_SPMM, 64, 0},
    {32, WLM_F32, WLM_SUM, 0, 100, 0, WLM_SPMM, 64, 0}, {32, WLM_F32, WLM_MAX, 0, 90, 1, WLM_SPMM, 64, 0},
    {64, WLM_F32, WLM_SUM, 0, 90, 0, WLM_SDDMM, 64, 0}, {32, WLM_F32, WLM_SUM, 0, 90, 0, WLM_SPMM, 1, 1},
    {2, WLM_F32, WLM_SUM, 0, 90, 0, WLM_SPMM, 1, 1},    {8, WLM_F32, WLM_MAX, 0, 90, 1, WLM_SPMM, 1, 1},
    {64, WLM_F16, WLM_MEAN, 0, 90, 0, WLM_SPMM, 64, 1}, {33, WLM_F64, WLM_SUM, 1, 90, 0, WLM_SPMM, 1, 1},
    {32, WLM_F32, WLM_SUM, 0, 80, 0, WLM_SPMM, 1, 1},   {128, WLM_F32, WLM_SUM, 0, 100, 0, WLM_SPMM, 1, 1},
};

/* The number behind `before` in the compiler's log, the largest of several. */
static long largest(const char *log, const char *before) {
  long most = -1;
  for (const char *at = log; (at = strstr(at, before)); at++) {
    const long value = strtol(at + strlen(before), NULL, 10);
    if (value > most) most = value;
  }
  return most;
}

/* Bytes of a thread's frame, the largest of several kernels: what is spilled, and copies of arguments. */
static long largest_frame(const char *log) {
  long most = -1;
  for (const char *at = log, *first; (at = strstr(at, " bytes stack frame")); at++) {
    for (first = at; first > log && first[-1] >= '0' && first[-1] <= '9';) first--;
    const long value = strtol(first, NULL, 10);
    if (value > most) most = value;
  }
  return most;
}

static int check(const char *variant, const wlmi_spec *spec, const wlmi_limits *limits) {
  HELD(wlmi_text) log = {0};
  WLM_FREED void *cubin = NULL;
  size_t size;
  HOLD(wlmi_program, program, wlmi_generator_emit(emit_generator, variant, spec, limits, &program));
  assert_true(program.is_batched == spec->is_batched);
  wlm_status status = wlmi_nvrtc_compile(program.source, variant, limits->arch, 0, &cubin, &size, &log);
  if (status != WLM_OK) fail_msg("%s: %s", variant, wlm_error_detail());
  const long registers = largest(log.data, "Used ");
  const long spilled = largest(log.data, "bytes stack frame, ") + largest(log.data, "bytes spill stores, ");
  const long frame = largest_frame(log.data);
  assert_true(registers > 0 && spilled >= 0 && frame >= 0);
  const int is_more = registers > program.max_registers || spilled > program.max_spilled || frame > program.max_spilled;
  if (is_more)
    print_error("sm_%d %s n = %lld: %ld registers, %ld bytes spilled and %ld of a frame; family.lua: %d and %d\n",
                limits->arch, variant, (long long)spec->problem.n, registers, spilled, frame, program.max_registers,
                program.max_spilled);
  return is_more;
}

static int check_families(const struct problem *p) {
  wlm_problem problem =
      PROBLEM(.n = p->n, .batch = p->batch, .b_order = p->order, .c_order = p->order, .operation = p->operation,
              .reduce = p->reduce, .want_argmax = p->argmax, .transpose = p->transpose, .dense_type = p->type);
  wlm_csr csr = CSR(.value_type = p->type, .values = &csr);
  wlmi_limits limits = emit_cuda;
  char text[2 * WLMI_VARIANT_NAME];
  int more = 0;
  limits.arch = p->arch;
  GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
  OWN(wlmi_candidates, list, wlmi_generator_describe(emit_generator, &spec, &limits, &list));
  for (int64_t i = 0, end; i < list->count; i = end) {
    for (end = i + 1; end < list->count && list->candidates[end].value.family == list->candidates[i].value.family;)
      end++;
    for (int64_t k = 0; k < STEPS && k < end - i; k++) {
      const char *variant = list->candidates[i + k * (end - i - 1) / (STEPS - 1)].variant;
      snprintf(text, sizeof text, "batch %d of sm_%d: %s", (int)(p - problems), p->arch, variant);
      if (test_is_drawn(text, ONE_IN)) more += check(variant, &spec, &limits);
    }
  }
  return more;
}

TEST_BETWEEN(kernels_fit_their_registers, emit_begin, emit_end) {
  int more = 0;
  test_needs_nvrtc();
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) more += check_families(&problems[i]);
  assert_int_equal(more, 0);
}
