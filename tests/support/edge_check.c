#include "support/edge_check.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/csr/presample.h"
#include "core/problem/element.h"
#include "core/reference/gradient.h"
#include "core/reference/reference.h"
#include "runtime/dispatch/plan.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/shapes.h"

enum { GUARD = 64 }; /* elements before and after dvalues, which must stay unchanged */

typedef struct operands {
  const char *shape;
  wlmi_csr_host a; /* values in float, rounded to the dense type's precision */
  void *rowptr, *colind, *values;
  wlmi_spec spec;
  wlm_execute_args call;
  void *x, *b, *old, *after; /* of the dense type; old and after with GUARD elements on both sides */
  size_t size;               /* of one element */
  int64_t edges;             /* of the arrays: those of a, and some behind the last row */
  int64_t count;             /* elements of dvalues and of values: edges x heads */
  char *is_read;             /* for each row of B, whether an edge that the problem uses reads it */
} operands;

static double draw_value(test_random *random) {
  double value = (double)(8 + test_draw(random, 17)) / 16;
  return test_draw(random, 2) ? value : -value;
}

/* Makes rows x ld elements, with NaN and infinities where the kernel must not read. */
static wlm_status dense(const operands *o, test_random *random, int64_t rows, int64_t ld, int is_b, void **to) {
  static const double strange[] = {NAN, INFINITY, -INFINITY};
  const wlm_type type = o->spec.problem.dense_type;
  wlm_status status = wlmi_alloc_array(rows * ld, o->size, "operand", to);
  for (int64_t i = 0; status == WLM_OK && i < rows * ld; i++) {
    const int64_t row = i / ld;
    const int used = i % ld < o->spec.problem.n && (is_b ? o->is_read[row] : o->a.rowptr[row + 1] > o->a.rowptr[row]);
    wlmi_element_put(type, *to, i, used ? draw_value(random) : strange[test_draw(random, 3)]);
  }
  return status;
}

static wlm_status find_rows_of_b(operands *o) {
  wlmi_edge_share *shares = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(o->a.cols, sizeof *o->is_read, "rows of B", (void **)&o->is_read));
  memset(o->is_read, 0, (size_t)o->a.cols);
  WLM_TRY(wlmi_sample_shares(&o->a, &o->spec.problem, o->call.seed, &shares));
  for (int64_t p = 0; p < o->a.nnz; p++)
    if (shares[p].times) o->is_read[o->a.colind[p]] = 1;
done:
  wlmi_free(shares);
  return status;
}

static wlm_status make_pattern(operands *o) {
  const wlm_index rowptr = o->spec.rowptr_type, colind = o->spec.colind_type;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(o->a.rows + 1, wlmi_index_size(rowptr), "rowptr", &o->rowptr));
  WLM_TRY(wlmi_alloc_array(o->edges, wlmi_index_size(colind), "colind", &o->colind));
  for (int64_t i = 0; i <= o->a.rows; i++)
    if (rowptr == WLM_I64)
      ((int64_t *)o->rowptr)[i] = o->a.rowptr[i];
    else
      ((int32_t *)o->rowptr)[i] = (int32_t)o->a.rowptr[i];
  for (int64_t p = 0; p < o->edges; p++) {
    const int32_t column = p < o->a.nnz ? o->a.colind[p] : 0;
    if (colind == WLM_I64)
      ((int64_t *)o->colind)[p] = column;
    else
      ((int32_t *)o->colind)[p] = column;
  }
done:
  return status;
}

static wlm_status operands_make(const kernel_check *check, int64_t step, int shape, test_random *random, operands *o) {
  static const struct {
    double alpha, beta;
    int64_t more_b, more_c;
  } calls[] = {{1, 0, 0, 0}, {1.5, 0, 3, 0}, {-2, 0.5, 0, 5}, {1, 1, 8, 4}};
  const uint64_t call = test_draw(random, sizeof calls / sizeof *calls);
  wlm_status status;
  *o = (operands){.shape = test_shape_name(shape), .spec = *check->spec, .call = WLM_EXECUTE_ARGS_INIT};
  const wlm_problem *p = &o->spec.problem;
  o->size = wlmi_type_size(p->dense_type);
  o->call.alpha = calls[call].alpha;
  o->call.beta = calls[call].beta;
  o->call.ldb = p->n + calls[call].more_b;
  o->call.ldc = p->n + calls[call].more_c;
  /* published fastrand then takes edges of the long row repeatedly */
  const int sampled = p->sampling.sample != WLM_SAMPLE_NONE;
  if (sampled && test_draw(random, 2)) o->call.seed = 1 + test_draw(random, 1 << 30);
  WLM_TRY(test_shape_make(shape, step, sampled ? 5 * 577 : 577, random, &o->a));
  o->edges = o->a.nnz;
  if (o->a.rows && o->a.cols && test_draw(random, 2)) o->edges += 1 + (int64_t)test_draw(random, 3 * (uint64_t)step);
  o->count = o->edges * p->heads;
  WLM_TRY(find_rows_of_b(o));
  WLM_TRY(make_pattern(o));
  if (o->spec.has_values) {
    WLM_TRY(wlmi_alloc_array(o->count, sizeof(float), "values", (void **)&o->a.values));
    WLM_TRY(wlmi_alloc_array(o->count, wlmi_type_size(o->spec.value_type), "values", &o->values));
    for (int64_t i = 0; i < o->count; i++) {
      o->a.values[i] = (float)draw_value(random); /* a short binary fraction, exact in all types */
      wlmi_element_put(o->spec.value_type, o->values, i, (double)o->a.values[i]);
    }
  }
  WLM_TRY(dense(o, random, o->a.rows, o->call.ldc, 0, &o->x));
  WLM_TRY(dense(o, random, o->a.cols, o->call.ldb, 1, &o->b));
  WLM_TRY(wlmi_alloc_array(o->count + 2 * GUARD, o->size, "dvalues", &o->old));
  WLM_TRY(wlmi_alloc_array(o->count + 2 * GUARD, o->size, "dvalues", &o->after));
  for (int64_t i = 0; i < o->count + 2 * GUARD; i++)
    wlmi_element_put(p->dense_type, o->old, i,
                     o->call.beta != 0 && i >= GUARD && i < GUARD + o->count ? draw_value(random) : NAN);
done:
  return status;
}

static void operands_release(operands *o) {
  void *all[] = {o->is_read, o->rowptr, o->colind, o->values, o->x, o->b, o->old, o->after};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) wlmi_free(all[i]);
  wlmi_csr_host_release(&o->a);
}

/* ---- on the device -------------------------------------------------------------------------------- */

enum { ROWPTR, COLIND, VALUES, X, B, DVALUES, WORKSPACE, MEMORIES };
typedef struct device_copy {
  wlm_csr csr;
  void *memory[MEMORIES];
} device_copy;

static wlm_status put(wlmi_device *device, const void *from, size_t size, void **to) {
  wlm_status status = device->ops->allocate(device, size ? size : 1, to);
  return status == WLM_OK && size ? device->ops->copy_in(device, *to, from, size) : status;
}

static wlm_status copy_make(wlmi_device *device, const operands *o, device_copy *d) {
  const wlmi_csr_host *a = &o->a;
  wlm_status status;
  *d = (device_copy){.csr = WLM_CSR_INIT};
  WLM_TRY(put(device, o->rowptr, (size_t)(a->rows + 1) * wlmi_index_size(o->spec.rowptr_type), &d->memory[ROWPTR]));
  WLM_TRY(put(device, o->colind, (size_t)o->edges * wlmi_index_size(o->spec.colind_type), &d->memory[COLIND]));
  if (o->values)
    WLM_TRY(put(device, o->values, (size_t)o->count * wlmi_type_size(o->spec.value_type), &d->memory[VALUES]));
  WLM_TRY(put(device, o->x, (size_t)(a->rows * o->call.ldc) * o->size, &d->memory[X]));
  WLM_TRY(put(device, o->b, (size_t)(a->cols * o->call.ldb) * o->size, &d->memory[B]));
  WLM_TRY(put(device, o->old, (size_t)(o->count + 2 * GUARD) * o->size, &d->memory[DVALUES]));
  d->csr.rows = a->rows;
  d->csr.cols = a->cols;
  d->csr.nnz = o->edges;
  d->csr.rowptr = d->memory[ROWPTR];
  d->csr.colind = d->memory[COLIND];
  d->csr.values = d->memory[VALUES];
  d->csr.rowptr_type = o->spec.rowptr_type;
  d->csr.colind_type = o->spec.colind_type;
  d->csr.value_type = o->spec.value_type;
done:
  return status;
}

static wlm_status run(const kernel_check *check, const wlmi_program *program, void *const kernels[WLM_MAX_PASSES],
                      const operands *o, device_copy *d, int number) {
  wlmi_device *device = check->device;
  const size_t size = (size_t)(o->count + 2 * GUARD) * o->size;
  wlm_plan plan = {0};
  wlm_status status;
  WLM_TRY(device->ops->copy_in(device, d->memory[DVALUES], o->old, size));
  WLM_TRY(bare_plan_fill(&plan, device, program, kernels, &d->csr, &o->spec));
  if (wlm_plan_workspace_size(&plan) && !d->memory[WORKSPACE])
    WLM_TRY(device->ops->allocate(device, wlm_plan_workspace_size(&plan), &d->memory[WORKSPACE]));
  if (check->before_run) check->before_run(check->user, number);
  WLM_TRY(test_execute_sddmm_call(&plan, &o->call, d->memory[X], program->uses_b ? d->memory[B] : NULL,
                                  (char *)d->memory[DVALUES] + GUARD * o->size, d->memory[WORKSPACE]));
  WLM_TRY(device->ops->synchronize(device, NULL));
  WLM_TRY(device->ops->copy_out(device, o->after, d->memory[DVALUES], size));
done:
  return status;
}

/* ---- comparing ------------------------------------------------------------------------------------ */

/* The error of a sum of n terms grows with sqrt(n); half types are rounded once more at the end. */
static double tolerance(const wlm_problem *p) {
  const wlm_type accumulator = wlmi_accumulator_type(p->dense_type);
  const double rounded = accumulator == p->dense_type ? 0 : wlmi_element_unit(p->dense_type);
  return rounded + (16 + 8 * sqrt((double)p->n)) * wlmi_element_unit(accumulator);
}

static wlm_status compare(const wlmi_program *program, const operands *o, const double *expected, const double *scale) {
  const wlm_problem *p = &o->spec.problem;
  const size_t guard = GUARD * o->size, inside = (size_t)o->count * o->size;
  const char *old = o->old, *after = o->after;
  if (memcmp(old, after, guard) || memcmp(old + guard + inside, after + guard + inside, guard))
    return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: writes outside of dvalues", program->variant, o->shape);
  const double worst = wlmi_reference_error(p->dense_type, after + guard, 1, NULL, o->count, 1, expected, scale);
  if (worst <= tolerance(p)) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s, alpha %g, beta %g, seed %llu: max_rel_err %.3g, allowed %.3g",
                   program->variant, o->shape, o->call.alpha, o->call.beta, (unsigned long long)o->call.seed, worst,
                   tolerance(p));
}

static wlm_status check_shape(const kernel_check *check, const wlmi_program *program,
                              void *const kernels[WLM_MAX_PASSES], int64_t step, int shape, test_random *random) {
  operands o = {0};
  device_copy d = {0};
  double *expected = NULL, *scale = NULL;
  void *first = NULL;
  wlm_status status;
  WLM_TRY(operands_make(check, step, shape, random, &o));
  WLM_TRY(copy_make(check->device, &o, &d));
  const size_t size = (size_t)(o.count + 2 * GUARD) * o.size;
  WLM_TRY(wlmi_alloc_array(o.count, sizeof *expected, "reference", (void **)&expected));
  WLM_TRY(wlmi_alloc_array(o.count, sizeof *scale, "reference", (void **)&scale));
  WLM_TRY(wlmi_alloc_array(1, size, "dvalues", &first));
  const char *const old = (char *)o.old + GUARD * o.size;
  const int64_t held = o.a.nnz * o.spec.problem.heads;
  WLM_TRY(wlmi_reference_edges(&o.a, &o.spec.problem, &o.call, o.x, o.b, old, NULL, held, expected, scale));
  for (int64_t i = held; i < o.count; i++) {
    expected[i] = o.call.beta != 0 ? o.call.beta * wlmi_element_get(o.spec.problem.dense_type, old, i) : 0;
    scale[i] = fabs(expected[i]);
  }
  for (int number = 0; number < check->runs; number++) {
    WLM_TRY(run(check, program, kernels, &o, &d, number));
    WLM_TRY(compare(program, &o, expected, scale));
    if (!number) memcpy(first, o.after, size);
    if (program->deterministic && memcmp(first, o.after, size))
      WLM_TRY(wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: run %d gives other bits than the first", program->variant, o.shape,
                        number));
  }
done:
  for (int i = 0; i < MEMORIES; i++)
    if (d.memory[i]) check->device->ops->release(check->device, d.memory[i]);
  operands_release(&o);
  wlmi_free(expected);
  wlmi_free(scale);
  wlmi_free(first);
  return status;
}

wlm_status edge_check_program(const kernel_check *check, const wlmi_program *program,
                              void *const kernels[WLM_MAX_PASSES]) {
  const wlmi_pass *pass = wlmi_program_first_execute(program);
  const int64_t step = pass->units == WLM_UNITS_NNZ ? pass->units_per_block / 4 : 8;
  test_random random = {check->seed * 0x9E3779B97F4A7C15u | 1};
  wlm_status status = WLM_OK;
  for (int shape = 0; shape < test_shape_count() && status == WLM_OK; shape++)
    status = check_shape(check, program, kernels, step < 200 ? step : 200, shape, &random);
  return status;
}
