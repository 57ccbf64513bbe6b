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
    {WLM_COPY_B, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I16, 0, 0, 64, 1},
    {WLM_DIV, WLM_F16, WLM_F32, WLM_I64, WLM_I64, WLM_I16, 1, 0, 10, 2},
};

int backward_problem_count(void) { return sizeof problems / sizeof *problems; }

wlmi_spec backward_problem(int number) {
  wlm_problem p = PROBLEM(.n = problems[number].n, .heads = problems[number].heads, .message = problems[number].message,
                          .operation = WLM_ARGMAX_GRADIENT, .reduce = number % 2 ? WLM_MIN : WLM_MAX,
                          .dense_type = problems[number].type, .argmax_type = problems[number].arg,
                          .transpose = problems[number].transpose);
  wlm_csr csr = CSR(.rowptr_type = problems[number].rowptr, .colind_type = problems[number].colind,
                    .value_type = problems[number].value_type, .values = problems[number].has_values ? &csr : NULL,
                    .base = number / 2 % 2);
  wlmi_spec spec = {0};
  (void)wlmi_spec_make(&p, &csr, &spec);
  return spec;
}

/* ---- operands ---------------------------------------------------------------------------------------- */

/* The arrays of the matrix; those of the operation's table follow. */
enum { ROWPTR, COLIND, VALUES, OF_TABLE, ARRAYS = OF_TABLE + WLMI_MAX_ARRAYS };
typedef struct array {
  const wlmi_array *row; /* of the table; NULL = of the matrix */
  int64_t ld;
  char *host, *device, *first; /* first: an output after the first run, with which later runs are compared */
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
  wlmi_arrays table;
  array arrays[ARRAYS];
  gradient_sums sums;
} operands;

static int is_output(const array *x) { return x->row && x->row->is_output; }

static const array *named(const operands *o, const char *name) {
  const array *x = o->arrays + OF_TABLE;
  while (strcmp(x->row->name, name)) x++;
  return x;
}

static double draw_value(test_random *random) {
  double value = (double)(8 + test_draw(random, 17)) / 16;
  return test_draw(random, 2) ? value : -value;
}

static wlm_status make_array(operands *o, int which, int64_t count, size_t size) {
  array *x = &o->arrays[which];
  x->count = (size_t)count;
  x->size = size;
  wlm_status status = wlmi_alloc_array(count, size, "operand", (void **)&x->host);
  if (status == WLM_OK && x->count) memset(x->host, 0xff, x->count * size); /* NaN */
  return status;
}

static void put_index(array *x, int64_t at, int64_t value) {
  if (x->size == sizeof(int64_t))
    ((int64_t *)(void *)x->host)[at] = value;
  else if (x->size == sizeof(uint16_t))
    ((uint16_t *)(void *)x->host)[at] = (uint16_t)value;
  else
    ((int32_t *)(void *)x->host)[at] = (int32_t)value;
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

static wlm_status make_matrix(operands *o, test_random *random) {
  wlmi_csr_host *a = &o->a;
  wlm_status status;
  WLM_TRY(make_array(o, ROWPTR, a->rows + 1, wlmi_index_size(o->spec.rowptr_type)));
  WLM_TRY(make_array(o, COLIND, a->nnz, wlmi_index_size(o->spec.colind_type)));
  for (int64_t i = 0; i <= a->rows; i++) put_index(&o->arrays[ROWPTR], i, a->rowptr[i] + o->spec.base);
  for (int64_t p = 0; p < a->nnz; p++) put_index(&o->arrays[COLIND], p, a->colind[p] + o->spec.base);
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

/* Fills an operand. dC without a winner is not read, and neither is what lies between the lines. */
static void fill(const operands *o, test_random *random, array *x) {
  const wlm_problem *p = &o->spec.problem;
  const int is_dc = !strcmp(x->row->name, "x"), is_position = x->row->element == WLMI_ELEMENT_POSITION;
  for (int64_t i = 0; i < (int64_t)x->count; i++) {
    const int inside = i % x->ld < p->n;
    const int64_t winner = inside && (is_dc || is_position) ? o->winners[i / x->ld * p->n + i % x->ld] : -1;
    if (is_position)
      put_index(x, i, inside ? winner : 1 << 30);
    else
      wlmi_element_put(p->dense_type, x->host, i, inside && (!is_dc || winner >= 0) ? draw_value(random) : NAN);
  }
}

static wlm_status make_of_table(operands *o, test_random *random) {
  wlm_status status;
  WLM_TRY(wlmi_arrays_make(&o->spec, &o->table));
  for (int i = 0; i < o->table.count; i++) {
    const wlmi_array *row = &o->table.list[i];
    array *x = &o->arrays[OF_TABLE + i];
    x->row = row;
    x->ld = row->columns;
    if (row->ld_name) memcpy(&x->ld, (char *)&o->call + row->ld_from, sizeof x->ld);
    const int64_t count = wlmi_array_lines(row, o->a.rows, o->a.cols, o->a.nnz) * x->ld;
    WLM_TRY(make_array(o, OF_TABLE + i, count + (row->is_output ? 2 * GUARD : 0), row->size));
    if (!row->is_output) fill(o, random, x);
  }
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
  argmax_gradient(&o->a, &o->spec.problem, &o->call, named(o, "x")->host, o->winners, named(o, "b")->host, sums);
  for (array *x = o->arrays + OF_TABLE; x < o->arrays + ARRAYS; x++)
    if (is_output(x)) WLM_TRY(wlmi_alloc_array((int64_t)x->count, x->size, "gradient", (void **)&x->first));
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
  WLM_TRY(make_matrix(o, random));
  WLM_TRY(make_of_table(o, random));
  WLM_TRY(make_sums(o));
done:
  return status;
}

static void operands_release(wlmi_device *device, operands *o) {
  void *all[] = {o->winners, o->sums.db, o->sums.db_scale, o->sums.dvalues, o->sums.dvalues_scale};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) wlmi_free(all[i]);
  for (int i = 0; i < ARRAYS; i++) {
    wlmi_free(o->arrays[i].host);
    wlmi_free(o->arrays[i].first);
    if (o->arrays[i].device) device->ops->release(device, o->arrays[i].device);
  }
  wlmi_csr_host_release(&o->a);
}

/* ---- running and comparing --------------------------------------------------------------------------- */

static wlm_status put(wlmi_device *device, array *x) {
  wlm_status status = x->device ? WLM_OK : device->ops->allocate(device, x->count * x->size + 1, (void **)&x->device);
  return status == WLM_OK && x->count ? device->ops->copy_in(device, x->device, x->host, x->count * x->size) : status;
}

static wlm_status fill_plan(const kernel_check *check, const wlmi_program *program,
                            void *const kernels[WLMI_MAX_PASSES], const operands *o, wlm_plan *plan) {
  wlm_csr csr = CSR(.rows = o->a.rows, .cols = o->a.cols, .nnz = o->a.nnz, .rowptr = o->arrays[ROWPTR].device,
                    .colind = o->arrays[COLIND].device, .values = o->arrays[VALUES].device);
  return bare_plan_fill(plan, check->device, program, kernels, &csr, &o->spec);
}

/* Compares an output with the reference; one that was not requested must be unchanged. `after` is a copy from the
 * device. */
static wlm_status compare(const operands *o, const array *x, int wanted, const char *after) {
  const char *const name = x->row->name;
  const int is_b = x->row->result == 0;
  const wlm_type type = wlmi_array_type(x->row, &o->spec.problem);
  const int64_t n = x->row->columns, lines = ((int64_t)x->count - 2 * GUARD) / x->ld;
  for (int64_t i = 0; i < (int64_t)x->count; i++) {
    const int64_t k = i - GUARD;
    if (wanted && k >= 0 && k < lines * x->ld && k % x->ld < n) continue;
    if (memcmp(x->host + (size_t)i * x->size, after + (size_t)i * x->size, x->size))
      return wlmi_fail(WLM_ERR_MISMATCH, "%s: writes %s at %lld", o->shape, name, (long long)k);
  }
  if (!wanted) return WLM_OK;
  const double worst =
      wlmi_reference_error(type, after + GUARD * x->size, x->ld, NULL, lines, n, is_b ? o->sums.db : o->sums.dvalues,
                           is_b ? o->sums.db_scale : o->sums.dvalues_scale);
  const double allowed = (16 + 8 * sqrt((double)(is_b ? o->rows : o->spec.problem.n))) * wlmi_element_unit(type);
  if (worst <= allowed) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s: %s is off by %.3g, allowed %.3g", o->shape, name, worst, allowed);
}

/* Every third run leaves out dB, and every third one dvalues. */
static int is_wanted(const array *x, int number) { return number % 3 != (x->row->result == 0 ? 1 : 2); }

static wlm_execute_args call_of(const operands *o, const wlmi_program *program, int number) {
  wlm_execute_args call = o->call;
  for (const array *x = o->arrays + OF_TABLE; x < o->arrays + ARRAYS; x++) {
    if (!x->row || (is_output(x) && !is_wanted(x, number)) || (!program->uses_b && !strcmp(x->row->name, "b")))
      continue;
    const char *const memory = x->device + (is_output(x) ? GUARD * x->size : 0);
    memcpy((char *)&call + x->row->from, &memory, sizeof memory);
  }
  return call;
}

static wlm_status run(const kernel_check *check, const wlmi_program *program, void *const kernels[WLMI_MAX_PASSES],
                      operands *o, int number) {
  wlmi_device *device = check->device;
  wlm_plan plan = {0};
  wlm_status status = WLM_OK;
  char *after = NULL;
  for (int i = 0; i < ARRAYS; i++)
    if (o->arrays[i].host) WLM_TRY(put(device, &o->arrays[i]));
  WLM_TRY(fill_plan(check, program, kernels, o, &plan));
  if (check->before_run) check->before_run(check->user, number);
  WLM_TRY(test_execute_args(&plan, call_of(o, program, number)));
  WLM_TRY(device->ops->synchronize(device, NULL));
  for (array *x = o->arrays + OF_TABLE; x < o->arrays + ARRAYS; x++) {
    if (!is_output(x)) continue;
    const size_t size = x->count * x->size;
    wlmi_free(after);
    WLM_TRY(wlmi_alloc_array((int64_t)x->count, x->size, "gradient", (void **)&after));
    WLM_TRY(device->ops->copy_out(device, after, x->device, size));
    WLM_TRY(compare(o, x, is_wanted(x, number), after));
    if (!number) memcpy(x->first, after, size);
    if (program->deterministic && is_wanted(x, number) && memcmp(x->first, after, size))
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
  void *kernels[WLMI_MAX_PASSES] = {0}, *image = NULL;
  size_t size;
  test_random random = {check->seed * 0x9E3779B97F4A7C15u | 1};
  WLM_TRY(
      wlmi_generator_emit_program(generator, WLMI_HELPER_GRADIENT, NULL, check->spec, &device->info.limits, &program));
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
