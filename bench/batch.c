/* Suite batch: 64 products of one pattern with values, B and C of their own, in f32: one call of a batch, a loop of
 * calls of the same plan for one product, and the strided batches of all ways of cuSPARSE's SpMM, timed together as in
 * suite core. Every product of every method is compared with float64. */
#include <math.h>

#include "bench/baseline_cusparse.h"
#include "bench/comparison.h"
#include "bench/results_file.h"
#include "core/base/memory.h"
#include "core/problem/sampling.h"
#include "core/reference/reference.h"
#include "runtime/context.h"

enum { PRODUCTS = 64, CALLS = 1000 };
enum { BATCH, LOOP, OURS, METHODS = OURS + WLMI_CUSPARSE_SPMV }; /* the baselines behind ours */
enum { NAN_BYTE = 0xFF, LARGE_BYTE = 0x7E };
static const double tolerance = 1e-5; /* relative to the sum of the absolute values of the terms */

/* An array of all products, on the host and on the device. */
typedef struct array {
  int64_t count; /* of one product */
  float *host;
  void *memory;
} array;

struct arena {
  const wlmi_bench_case *bench;
  wlmi_device *device;
  array values, b, c;
  void *columns; /* colind for each product */
  double *expected, *scale;
  wlmi_method methods[METHODS];
  int count;
};

/* A plan and a call of it, which is repeated for each product where the plan is for one. */
typedef struct calls {
  wlmi_device *device;
  wlm_plan *plan;
  wlm_execute_args args;
  int repeat;
  void *workspace, *prepared;
} calls;

/* ---- operands ------------------------------------------------------------------------------------------- */

static wlm_status make_array(const struct arena *arena, int64_t count, uint64_t seed, array *a) {
  const int64_t all = count * PRODUCTS;
  a->count = count;
  WLM_CHECK(wlmi_alloc_array(all, sizeof *a->host, "operands", (void **)&a->host));
  WLM_CHECK(arena->device->ops->allocate(arena->device, (size_t)all * sizeof *a->host, &a->memory));
  for (int64_t i = 0; i < all; i++) /* uniform in [-1, 1) */
    a->host[i] = (float)(wlmi_sample_hash(arena->bench->seed + seed, i) >> 40) * 0x1p-23f - 1.0f;
  return arena->device->ops->copy_in(arena->device, a->memory, a->host, (size_t)all * sizeof *a->host);
}

static wlm_status repeat_columns(struct arena *arena) {
  const wlmi_csr_host *a = arena->bench->csr;
  const size_t size = (size_t)a->nnz * sizeof *a->colind;
  WLM_CHECK(arena->device->ops->allocate(arena->device, PRODUCTS * size, &arena->columns));
  for (size_t k = 0; k < PRODUCTS; k++)
    WLM_CHECK(arena->device->ops->copy_in(arena->device, (char *)arena->columns + k * size, a->colind, size));
  return WLM_OK;
}

static wlm_status compute_expected(struct arena *arena) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_execute_args call = WLM_EXECUTE_ARGS_INIT;
  problem.n = call.ldb = call.ldc = arena->bench->n;
  WLM_CHECK(
      wlmi_alloc_array(arena->c.count * PRODUCTS, sizeof *arena->expected, "reference", (void **)&arena->expected));
  WLM_CHECK(wlmi_alloc_array(arena->c.count * PRODUCTS, sizeof *arena->scale, "reference", (void **)&arena->scale));
  for (int64_t k = 0; k < PRODUCTS; k++) {
    wlmi_csr_host a = *arena->bench->csr;
    const wlmi_reference_result result = {arena->expected + k * arena->c.count, arena->scale + k * arena->c.count,
                                          NULL};
    a.values = arena->values.host + k * arena->values.count;
    call.b = arena->b.host + k * arena->b.count;
    WLM_CHECK(wlmi_reference_rows(&a, &problem, &call, NULL, a.rows, &result));
  }
  return WLM_OK;
}

/* ---- methods -------------------------------------------------------------------------------------------- */

static wlm_status enqueue(void *user, void *stream) {
  const calls *c = user;
  wlm_execute_args args = c->args;
  args.stream = stream;
  for (int k = 0; k < c->repeat; k++) {
    WLM_CHECK(wlm_plan_execute(c->plan, &args));
    args.values = (const float *)args.values + args.values_stride;
    args.b = (const float *)args.b + args.b_stride;
    args.c = (float *)args.c + args.c_stride;
  }
  return WLM_OK;
}

static void destroy(void *user) {
  calls *c = user;
  wlm_plan_destroy(c->plan);
  c->device->ops->release(c->device, c->workspace);
  c->device->ops->release(c->device, c->prepared);
  wlmi_free(c);
}

static wlm_status plan(const struct arena *arena, int batch, calls *c) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = arena->bench->n;
  problem.batch = batch;
  problem.policy.expected_calls = CALLS;
  c->device = arena->device;
  c->repeat = PRODUCTS / batch;
  c->args = (wlm_execute_args)WLM_EXECUTE_ARGS_INIT;
  c->args.values = arena->values.memory, c->args.b = arena->b.memory, c->args.c = arena->c.memory;
  c->args.values_stride = arena->values.count, c->args.b_stride = arena->b.count, c->args.c_stride = arena->c.count;
  WLM_CHECK(wlm_plan_create(arena->bench->context, arena->bench->upload->matrix, &problem, &c->plan));
  const size_t prepared = wlm_plan_prepared_size(c->plan);
  c->args.workspace_size = wlm_plan_workspace_size(c->plan);
  WLM_CHECK(c->device->ops->allocate(c->device, c->args.workspace_size, &c->workspace));
  WLM_CHECK(c->device->ops->allocate(c->device, prepared, &c->prepared));
  c->args.workspace = c->workspace;
  return wlm_plan_prepare(c->plan, c->prepared, NULL);
}

static wlm_status enter_ours(struct arena *arena, int batch, wlmi_method *method) {
  calls *c = wlmi_alloc_zero(1, sizeof *c);
  if (!c) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "plan");
  *method = (wlmi_method){.enqueue = enqueue, .destroy = destroy, .user = c};
  WLM_CHECK(plan(arena, batch, c));
  snprintf(method->name, sizeof method->name, "%s", wlm_plan_variant(c->plan));
  return WLM_OK;
}

static void enter_baselines(struct arena *arena) {
  wlmi_cusparse_batch batch = {.a = *wlmi_matrix_csr(arena->bench->upload->matrix),
                               .n = arena->bench->n,
                               .count = PRODUCTS,
                               .b = arena->b.memory,
                               .c = arena->c.memory};
  batch.a.colind = arena->columns;
  batch.a.values = arena->values.memory;
  for (int way = 0; way < WLMI_CUSPARSE_SPMV; way++)
    wlmi_method_cusparse_batch(arena->device, &batch, way, &arena->methods[arena->count++]);
}

/* Before, C is full of NaN; for a baseline of large finite numbers, because it may multiply the old C by 0. */
static wlm_status run_once(struct arena *arena, wlmi_method *method, int is_ours) {
  const wlmi_device_ops *ops = arena->device->ops;
  const int64_t rows = arena->bench->csr->rows * PRODUCTS;
  const size_t size = (size_t)(arena->c.count * PRODUCTS) * sizeof *arena->c.host;
  WLM_CHECK(ops->fill(arena->device, NULL, arena->c.memory, is_ours ? NAN_BYTE : LARGE_BYTE, size));
  WLM_CHECK(method->enqueue(method->user, NULL));
  WLM_CHECK(ops->synchronize(arena->device, NULL));
  WLM_CHECK(ops->copy_out(arena->device, NULL, arena->c.host, arena->c.memory, size));
  method->max_rel_err = wlmi_reference_error(WLM_F32, arena->c.host, arena->bench->n, NULL, rows, arena->bench->n,
                                             arena->expected, arena->scale);
  if (method->max_rel_err <= tolerance) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s differs from float64 by %g", method->name, method->max_rel_err);
}

static wlm_status check_all(struct arena *arena) {
  for (int i = 0; i < arena->count; i++) {
    wlmi_method *method = &arena->methods[i];
    if (method->failure) continue;
    const wlm_status status = run_once(arena, method, i < OURS);
    if (status != WLM_OK && i < OURS) return status;
    if (status != WLM_OK) wlmi_method_give_up(method, status);
  }
  return WLM_OK;
}

/* ---- a case --------------------------------------------------------------------------------------------- */

static void write_line(const struct arena *arena, int64_t repeats, wlmi_text *line) {
  const wlmi_method *batch = &arena->methods[BATCH], *loop = &arena->methods[LOOP];
  const int baselines = arena->count - OURS;
  wlmi_results_begin(line, arena->bench);
  wlmi_results_put_matrix(line, arena->bench->csr, arena->bench->n);
  wlmi_json_put(line,
                "batch=%d calls=%jd us=%.3f spread=%.4f loop_us=%.3f cusparse_us=%.3f variant=%s loop_variant=%s "
                "max_rel_err=%.3g",
                PRODUCTS, repeats, wlmi_method_us(batch), batch->spread, wlmi_method_us(loop),
                wlmi_method_us(wlmi_methods_quickest(&arena->methods[OURS], baselines)), batch->name, loop->name,
                batch->max_rel_err);
  wlmi_results_put_methods(line, "cusparse", "cusparse_errors", &arena->methods[OURS], baselines);
  wlmi_results_end(line);
}

static void release(struct arena *arena) {
  array *const arrays[] = {&arena->values, &arena->b, &arena->c};
  for (int i = 0; i < METHODS; i++) wlmi_method_release(&arena->methods[i]);
  for (int i = 0; i < 3; i++) {
    wlmi_free(arrays[i]->host);
    arena->device->ops->release(arena->device, arrays[i]->memory);
  }
  arena->device->ops->release(arena->device, arena->columns);
  wlmi_free(arena->expected);
  wlmi_free(arena->scale);
}

static wlm_status run(const wlmi_bench_case *bench, wlmi_text *line) {
  struct arena arena = {.bench = bench, .device = wlmi_context_device(bench->context)};
  const wlmi_csr_host *a = bench->csr;
  int64_t repeats;
  wlm_status status;
  WLM_TRY(make_array(&arena, a->nnz, 0, &arena.values));
  WLM_TRY(make_array(&arena, a->cols * bench->n, 1, &arena.b));
  WLM_TRY(make_array(&arena, a->rows * bench->n, 2, &arena.c));
  WLM_TRY(repeat_columns(&arena));
  WLM_TRY(compute_expected(&arena));
  WLM_TRY(enter_ours(&arena, PRODUCTS, &arena.methods[arena.count++]));
  WLM_TRY(enter_ours(&arena, 1, &arena.methods[arena.count++]));
  if (arena.device->info.limits.target == WLMI_TARGET_CUDA) enter_baselines(&arena);
  WLM_TRY(check_all(&arena));
  WLM_TRY(wlmi_comparison_time(arena.device, arena.methods, arena.count, bench->samples, &repeats));
  write_line(&arena, repeats, line);
done:
  release(&arena);
  return status;
}

const wlmi_bench_suite wlmi_suite_batch = {
    .name = "batch",
    .help = "64 products of one pattern in one call, in a loop, and by cuSPARSE's strided batches",
    .shown = "us spread loop_us cusparse_us max_rel_err variant",
    .run = run,
    .is_synthetic = 1,
};
