/* Suites core, half and bf16, the same in other types, and column_major, the same with column-major B and C (without
 * GE-SpMM and the host's baselines, which are row-major): the fastest candidates, the library's choice, our
 * reimplementation of GE-SpMM and all ways of cuSPARSE (on the host: the host's baselines), timed together
 * (bench/comparison.c). */
#include <string.h>

#include "bench/core_line.h"
#include "bench/host_baselines.h"
#include "bench/suite.h"

enum { OURS = 5, GE_SPMM = 2, PREPARE_SAMPLES = 7 };

struct arena {
  const wlmi_bench_case *bench;
  wlmi_comparison comparison;
  /* Timed in the last round: first ours (the winners, then others that are not among them), then the baselines of this
   * kind of device. */
  wlmi_method methods[OURS + WLMI_CUSPARSE_WAYS];
  int ours, count;
  int prepared, chosen, ge[GE_SPMM]; /* index among ours, -1 = none */
};

/* Adds a variant to ours, by name or (NULL) the library's choice; returns its index. */
static int add_ours(struct arena *arena, const char *variant) {
  wlmi_method *method = &arena->methods[arena->ours];
  wlmi_comparison_enter(&arena->comparison, variant, method);
  for (int i = 0; i < arena->ours; i++) {
    if (strcmp(arena->methods[i].name, method->name)) continue;
    wlmi_method_release(method);
    return i;
  }
  return arena->ours++;
}

/* GE-SpMM's rule: warps are merged if a row of C is wider than a warp. For narrower rows paper and published code
 * differ: Algorithm 2 as for 32 columns, or Algorithm 1 in blocks of 128 threads as narrow as C. The faster one counts.
 */
static void add_ge_spmm(struct arena *arena) {
  const int64_t n = arena->bench->n;
  arena->ge[0] = add_ours(arena, n >= 64 ? "row_crc/cf=2,rows=8" : "row_crc/cf=1,rows=4");
  if (n < 32)
    arena->ge[1] =
        add_ours(arena, n <= 16 ? "row_naive/columns=16,rows=8,axis=units" : "row_naive/columns=32,rows=4,axis=units");
}

static wlm_status enter_winners(struct arena *arena) {
  wlmi_winners winners;
  WLM_CHECK(wlmi_comparison_winners(&arena->comparison, &winners));
  arena->methods[arena->ours++] = winners.plain;
  if (winners.prepared.user) {
    arena->prepared = arena->ours;
    arena->methods[arena->ours++] = winners.prepared;
  }
  return WLM_OK;
}

static wlm_status last_round(struct arena *arena, wlmi_core_result *result) {
  const wlmi_operands *operands = &arena->comparison.operands;
  wlmi_device *device = operands->device;
  const int on_gpu = device->info.limits.target == WLMI_TARGET_CUDA;
  arena->chosen = add_ours(arena, NULL);
  const int is_row_major = arena->bench->suite->order == WLM_ROW_MAJOR;
  const int host_baselines = is_row_major ? WLMI_HOST_BASELINES : 0;
  if (on_gpu && is_row_major) add_ge_spmm(arena);
  wlmi_method *baselines = &arena->methods[arena->ours];
  const int ways = wlmi_cusparse_ways(arena->bench->n);
  for (int way = 0; way < ways && on_gpu; way++)
    wlmi_method_cusparse(operands, way, &baselines[way], &result->preprocess[way]);
  if (!on_gpu) wlmi_host_baselines_enter(operands, host_baselines, baselines);
  result->baselines = baselines;
  result->baseline_count = on_gpu ? ways : host_baselines;
  arena->count = arena->ours + result->baseline_count;
  wlmi_comparison_check(&arena->comparison, baselines, result->baseline_count);
  WLM_CHECK(wlmi_comparison_time(device, arena->methods, arena->count, arena->bench->samples, &result->calls));
  for (int i = 0; i < arena->ours; i++)
    if (arena->methods[i].failure) wlmi_comparison_note(&arena->comparison, &arena->methods[i]);
  if (arena->methods[0].failure) return wlmi_fail(WLM_ERR_DEVICE, "%s", arena->methods[0].failure);
  return wlmi_method_time_prepare(&arena->methods[arena->prepared], PREPARE_SAMPLES, &result->prepare_seconds);
}

static wlm_status run(const wlmi_bench_case *bench, wlmi_text *line) {
  struct arena arena = {.bench = bench, .ge = {-1, -1}};
  wlmi_core_result result = {.op = "sum", .bench = bench, .comparison = &arena.comparison};
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_status status;
  problem.n = bench->n;
  problem.dense_type = bench->suite->type;
  problem.b_order = problem.c_order = bench->suite->order;
  WLM_TRY(wlmi_comparison_create(bench, NULL, NULL, &problem, &arena.comparison));
  WLM_TRY(enter_winners(&arena));
  WLM_TRY(last_round(&arena, &result));
  result.best = &arena.methods[0];
  result.prepared = &arena.methods[arena.prepared];
  result.chosen = &arena.methods[arena.chosen];
  result.ge_spmm = wlmi_method_quicker(arena.ge[0] < 0 ? NULL : &arena.methods[arena.ge[0]],
                                       arena.ge[1] < 0 ? NULL : &arena.methods[arena.ge[1]]);
  wlmi_core_write_line(&result, line);
done:
  for (int i = 0; i < OURS + WLMI_CUSPARSE_WAYS; i++) wlmi_method_release(&arena.methods[i]);
  wlmi_comparison_release(&arena.comparison);
  return status;
}

static const char shown[] =
    "us spread prepared_us ge_spmm_us chosen_us cusparse.default_nopre host_rivals.openmp max_rel_err variant";

#define ROW(name_, help_, type_) \
  { .name = name_, .help = help_, .shown = shown, .run = run, .list = "core", .type = type_ }

const wlmi_bench_suite wlmi_suite_column_major = {.name = "column_major",
                                                  .help = "suite core with column-major B and C",
                                                  .shown = "us spread chosen_us cusparse.default max_rel_err variant",
                                                  .run = run,
                                                  .list = "core",
                                                  .order = WLM_COLUMN_MAJOR};
const wlmi_bench_suite wlmi_suite_core =
    ROW("core", "fp32 sum: all candidates, GE-SpMM, the baselines of the device", WLM_F32);
const wlmi_bench_suite wlmi_suite_half = ROW("half", "suite core in f16", WLM_F16);
const wlmi_bench_suite wlmi_suite_bf16 = ROW("bf16", "suite core in bf16", WLM_BF16);
