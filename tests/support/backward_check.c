#include "support/backward_check.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/reference/reference.h"
#include "runtime/dispatch/plan.h"
#include "support/argmax_gradient.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/shapes.h"

enum { GUARD = 16 }; /* elements before and after an output, which must stay unchanged */

static const struct {
  wlm_message message;
  wlm_type type, value_type;
  wlm_index rowptr, colind, arg;
  int has_values, transpose;
  int64_t n, heads;
} problems[] = {
    {WLM_MUL, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 1, 0, 33, 3},
    {WLM_MUL, WLM_F16, WLM_F16, WLM_I64, WLM_I32, WLM_I32, 1, 1, 16, 1},
    {WLM_MUL, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I64, 0, 0, 1, 1},
    {WLM_COPY_B, WLM_F32, WLM_F32, WLM_I32, WLM_I64, WLM_I32, 1, 1, 64, 4},
    {WLM_COPY_A, WLM_F64, WLM_F64, WLM_I32, WLM_I32, WLM_I64, 1, 0, 4, 1},
    {WLM_ADD, WLM_BF16, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 1, 0, 7, 1},
    {WLM_SUB, WLM_F32, WLM_F32, WLM_I64, WLM_I64, WLM_I64, 1, 0, 32, 1},
    {WLM_RSUB, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 1, 1, 2, 1},
    {WLM_DIV, WLM_F64, WLM_F64, WLM_I32, WLM_I32, WLM_I32, 1, 1, 9, 9},
    {WLM_RDIV, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 1, 0, 66, 2},
    {WLM_MUL, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 1, 0, 40, 1},
    {WLM_MUL, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 0, 0, 6, 3},
};

int backward_problem_count(void) { return sizeof problems / sizeof *problems; }

wlmi_spec backward_problem(int number) {
  wlm_problem p = WLM_PROBLEM_INIT;
  wlm_csr csr = WLM_CSR_INIT;
  wlmi_spec spec = {0};
  p.n = problems[number].n;
  p.heads = problems[number].heads;
  p.message = problems[number].message;
  p.reduce = number % 2 ? WLM_MIN : WLM_MAX;
  p.dense_type = problems[number].type;
  p.want_argmax = 1;
  p.argmax_type = problems[number].arg;
  p.transpose = problems[number].transpose;
  csr.rowptr_type = problems[number].rowptr;
  csr.colind_type = problems[number].colind;
  csr.value_type = problems[number].value_type;
  csr.values = problems[number].has_values ? &csr : NULL;
  (void)wlmi_spec_make(&p, &csr, &spec);
  return spec;
}

/* ---- operands ---------------------------------------------------------------------------------------- */

enum { ROWPTR, COLIND, VALUES, DC, ARG, B, DB, DVALUES, ARRAYS };
typedef struct array {
  void *host, *device;
  size_t count, size;
} array;

typedef struct operands {
  const char *shape;
  wlmi_csr_host a;
  wlmi_spec spec;
  wlm_execute_args call;
  int64_t rows, cols; /* of op(A) */
  int64_t count;      /* elements of dvalues and of values: edges x heads */
  int64_t *winners;   /* rows x n */
  array arrays[ARRAYS];
  gradient_sums sums;
  char *first[2]; /* dB and dvalues of the first run, with which later runs are compared */
} operands;

static double draw_value(test_random *random) {
  double value = (double)(8 + test_draw(random, 17)) / 16;
  return test_draw(random, 2) ? value : -value;
}

static wlm_status make_array(operands *o, int which, int64_t count, size_t size) {
  array *x = &o->arrays[which];
  x->count = (size_t)count;
  x->size = size;
  wlm_status status = wlmi_alloc_array(count, size, "operand", &x->host);
  if (status == WLM_OK && x->count) memset(x->host, 0xff, x->count * size); /* NaN */
  return status;
}

static void put_index(array *x, int64_t at, int64_t value) {
  if (x->size == sizeof(int64_t))
    ((int64_t *)x->host)[at] = value;
  else
    ((int32_t *)x->host)[at] = (int32_t)value;
}

/* For each element of C draws the winner: any edge of its row of op(A), all with equal probability. */
static wlm_status draw_winners(operands *o, test_random *random) {
  const int64_t n = o->spec.problem.n;
  uint64_t *seen = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(o->rows * n, sizeof *o->winners, "positions", (void **)&o->winners));
  WLM_TRY(wlmi_alloc_array(o->rows, sizeof *seen, "counts", (void **)&seen));
  for (int64_t i = 0; i < o->rows * n; i++) o->winners[i] = -1;
  for (int64_t i = 0; i < o->rows; i++) seen[i] = 0;
  for (int64_t row = 0; row < o->a.rows; row++)
    for (int64_t p = o->a.rowptr[row]; p < o->a.rowptr[row + 1]; p++) {
      const int64_t i = o->spec.problem.transpose ? o->a.colind[p] : row;
      seen[i]++;
      for (int64_t j = 0; j < n; j++)
        if (!test_draw(random, seen[i])) o->winners[i * n + j] = p;
    }
done:
  wlmi_free(seen);
  return status;
}

static wlm_status make_pattern(operands *o, test_random *random) {
  wlmi_csr_host *a = &o->a;
  wlm_status status;
  WLM_TRY(make_array(o, ROWPTR, a->rows + 1, wlmi_index_size(o->spec.rowptr_type)));
  WLM_TRY(make_array(o, COLIND, a->nnz, wlmi_index_size(o->spec.colind_type)));
  for (int64_t i = 0; i <= a->rows; i++) put_index(&o->arrays[ROWPTR], i, a->rowptr[i]);
  for (int64_t p = 0; p < a->nnz; p++) put_index(&o->arrays[COLIND], p, a->colind[p]);
  if (!o->spec.has_values) goto done;
  WLM_TRY(make_array(o, VALUES, o->count, wlmi_type_size(o->spec.value_type)));
  WLM_TRY(wlmi_alloc_array(o->count, sizeof *a->values, "values", (void **)&a->values));
  for (int64_t p = 0; p < o->count; p++) {
    a->values[p] = (float)draw_value(random); /* a short binary fraction, exact in all types */
    wlmi_element_put(o->spec.value_type, o->arrays[VALUES].host, p, (double)a->values[p]);
  }
done:
  return status;
}

static wlm_status make_dense(operands *o, test_random *random) {
  const wlm_problem *p = &o->spec.problem;
  const int64_t ldb = o->call.ldb, ldc = o->call.ldc;
  const size_t size = wlmi_type_size(p->dense_type), sum = wlmi_type_size(wlmi_accumulator_type(p->dense_type));
  wlm_status status;
  WLM_TRY(make_array(o, DC, o->rows * ldc, size));
  WLM_TRY(make_array(o, ARG, o->rows * ldc, wlmi_index_size(p->argmax_type)));
  WLM_TRY(make_array(o, B, o->cols * ldb, size));
  WLM_TRY(make_array(o, DB, o->cols * ldb + 2 * GUARD, sum));
  WLM_TRY(make_array(o, DVALUES, o->count + 2 * GUARD, sum));
  for (int64_t i = 0; i < o->rows * ldc; i++) {
    const int64_t winner = i % ldc < p->n ? o->winners[i / ldc * p->n + i % ldc] : 1 << 30;
    put_index(&o->arrays[ARG], i, winner);
    wlmi_element_put(p->dense_type, o->arrays[DC].host, i, winner >= 0 && winner < 1 << 30 ? draw_value(random) : NAN);
  }
  for (int64_t i = 0; i < o->cols * ldb; i++)
    wlmi_element_put(p->dense_type, o->arrays[B].host, i, i % ldb < p->n ? draw_value(random) : NAN);
done:
  return status;
}

static wlm_status make_sums(operands *o) {
  const int64_t elements = o->cols * o->spec.problem.n;
  gradient_sums *sums = &o->sums;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(elements, sizeof(double), "dB", (void **)&sums->db));
  WLM_TRY(wlmi_alloc_array(elements, sizeof(double), "dB", (void **)&sums->db_scale));
  WLM_TRY(wlmi_alloc_array(o->count, sizeof(double), "dvalues", (void **)&sums->dvalues));
  WLM_TRY(wlmi_alloc_array(o->count, sizeof(double), "dvalues", (void **)&sums->dvalues_scale));
  argmax_gradient(&o->a, &o->spec.problem, &o->call, o->arrays[DC].host, o->winners, o->arrays[B].host, sums);
  for (int i = 0; i < 2; i++)
    WLM_TRY(
        wlmi_alloc_array((int64_t)o->arrays[DB + i].count, o->arrays[DB + i].size, "gradient", (void **)&o->first[i]));
done:
  return status;
}

static wlm_status operands_make(const kernel_check *check, int shape, test_random *random, operands *o) {
  wlm_status status;
  *o = (operands){.shape = test_shape_name(shape), .spec = *check->spec, .call = WLM_EXECUTE_ARGS_INIT};
  const wlm_problem *p = &o->spec.problem;
  o->call.alpha = test_draw(random, 2) ? 1 : -1.5;
  o->call.ldb = p->n + (int64_t)test_draw(random, 2) * 3;
  o->call.ldc = p->n + (int64_t)test_draw(random, 2) * 5;
  WLM_TRY(test_shape_make(shape, 32, 577, random, &o->a));
  o->count = o->a.nnz * p->heads;
  o->rows = p->transpose ? o->a.cols : o->a.rows;
  o->cols = p->transpose ? o->a.rows : o->a.cols;
  WLM_TRY(draw_winners(o, random));
  WLM_TRY(make_pattern(o, random));
  WLM_TRY(make_dense(o, random));
  WLM_TRY(make_sums(o));
done:
  return status;
}

static void operands_release(wlmi_device *device, operands *o) {
  void *all[] = {o->winners,  o->sums.db, o->sums.db_scale, o->sums.dvalues, o->sums.dvalues_scale,
                 o->first[0], o->first[1]};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) wlmi_free(all[i]);
  for (int i = 0; i < ARRAYS; i++) {
    wlmi_free(o->arrays[i].host);
    if (o->arrays[i].device) device->ops->release(device, o->arrays[i].device);
  }
  wlmi_csr_host_release(&o->a);
}

/* ---- running and comparing --------------------------------------------------------------------------- */

static wlm_status put(wlmi_device *device, array *x) {
  wlm_status status = x->device ? WLM_OK : device->ops->allocate(device, x->count * x->size + 1, &x->device);
  return status == WLM_OK && x->count ? device->ops->copy_in(device, x->device, x->host, x->count * x->size) : status;
}

/* A plan with the kernels of a gradient, but none of the product. */
static wlm_status fill_plan(const kernel_check *check, const wlmi_program *program, void *const kernels[WLM_MAX_PASSES],
                            const operands *o, wlm_plan *plan) {
  wlm_csr csr = WLM_CSR_INIT, seen;
  csr.rows = o->a.rows;
  csr.cols = o->a.cols;
  csr.nnz = o->a.nnz;
  csr.rowptr = o->arrays[ROWPTR].device;
  csr.colind = o->arrays[COLIND].device;
  csr.values = o->arrays[VALUES].device;
  seen = csr;
  seen.rows = o->rows;
  seen.cols = o->cols;
  wlm_status status = bare_plan_fill(plan, check->device, program, kernels, &seen, &o->spec);
  if (status != WLM_OK) return status;
  wlmi_plan_set_backward(plan, program, kernels, &o->spec);
  return wlmi_plan_bind_backward(plan, &plan->bound, &csr);
}

/* Compares an output with the reference; one that was not requested must be unchanged. `after` is a copy from the
 * device. */
static wlm_status compare(const operands *o, int which, int wanted, const char *after) {
  const wlm_problem *p = &o->spec.problem;
  const array *x = &o->arrays[which];
  const int is_b = which == DB;
  const wlm_type type = wlmi_accumulator_type(p->dense_type);
  const int64_t ld = is_b ? o->call.ldb : 1, n = is_b ? p->n : 1, rows = is_b ? o->cols : o->count;
  for (int64_t i = 0; i < (int64_t)x->count; i++) {
    const int64_t k = i - GUARD;
    if (wanted && k >= 0 && k < rows * ld && k % ld < n) continue;
    if (memcmp((const char *)x->host + (size_t)i * x->size, after + (size_t)i * x->size, x->size))
      return wlmi_fail(WLM_ERR_MISMATCH, "%s: writes %s at %lld", o->shape, is_b ? "dB" : "dvalues", (long long)k);
  }
  if (!wanted) return WLM_OK;
  const double worst =
      wlmi_reference_error(type, after + GUARD * x->size, ld, NULL, rows, n, is_b ? o->sums.db : o->sums.dvalues,
                           is_b ? o->sums.db_scale : o->sums.dvalues_scale);
  const double allowed = (16 + 8 * sqrt((double)(is_b ? o->rows : p->n))) * wlmi_element_unit(type);
  if (worst <= allowed) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s: %s is off by %.3g, allowed %.3g", o->shape, is_b ? "dB" : "dvalues", worst,
                   allowed);
}

static wlm_status run(const kernel_check *check, const wlmi_program *program, void *const kernels[WLM_MAX_PASSES],
                      operands *o, int number) {
  wlmi_device *device = check->device;
  wlm_plan plan = {0};
  wlm_status status = WLM_OK;
  const int wanted[] = {number % 3 != 1, number % 3 != 2};
  void *output[2] = {NULL, NULL};
  char *after = NULL;
  for (int i = 0; i < ARRAYS; i++)
    if (o->arrays[i].host) WLM_TRY(put(device, &o->arrays[i]));
  WLM_TRY(fill_plan(check, program, kernels, o, &plan));
  for (int i = 0; i < 2; i++)
    if (wanted[i]) output[i] = (char *)o->arrays[DB + i].device + GUARD * o->arrays[DB + i].size;
  if (check->before_run) check->before_run(check->user, number);
  WLM_TRY(test_execute_argmax_backward_call(&plan, &o->call, o->arrays[DC].device, o->arrays[ARG].device,
                                            program->uses_b ? o->arrays[B].device : NULL, output[0], output[1]));
  WLM_TRY(device->ops->synchronize(device, NULL));
  for (int i = 0; i < 2; i++) {
    const array *x = &o->arrays[DB + i];
    wlmi_free(after);
    WLM_TRY(wlmi_alloc_array((int64_t)x->count, x->size, "gradient", (void **)&after));
    WLM_TRY(device->ops->copy_out(device, after, x->device, x->count * x->size));
    WLM_TRY(compare(o, DB + i, wanted[i], after));
    if (!number) memcpy(o->first[i], after, x->count * x->size);
    if (program->deterministic && wanted[i] && memcmp(o->first[i], after, x->count * x->size))
      WLM_TRY(wlmi_fail(WLM_ERR_MISMATCH, "%s: run %d gives other bits than the first", o->shape, number));
  }
done:
  wlmi_free(after);
  return status;
}

wlm_status backward_check(const kernel_check *check, wlmi_generator *generator) {
  wlm_status status;
  wlmi_device *device = check->device;
  wlmi_program program = {0};
  wlmi_module *module = NULL;
  void *kernels[WLM_MAX_PASSES] = {0}, *image = NULL;
  size_t size;
  test_random random = {check->seed * 0x9E3779B97F4A7C15u | 1};
  WLM_TRY(wlmi_generator_arg_backward(generator, check->spec, &device->info.limits, &program));
  WLM_TRY(device->ops->compile(device, &program, &image, &size));
  WLM_TRY(device->ops->load(device, &program, image, size, kernels, &module));
  for (int shape = 0; shape < test_shape_count() && status == WLM_OK; shape++) {
    operands o = {0};
    status = operands_make(check, shape, &random, &o);
    for (int number = 0; number < check->runs && status == WLM_OK; number++)
      status = run(check, &program, kernels, &o, number);
    operands_release(device, &o);
  }
done:
  if (module) device->ops->unload(device, module);
  wlmi_free(image);
  wlmi_program_release(&program);
  return status;
}
