#include "support/kernel_check.h"

#include <math.h>
#include <string.h>

#include "core/problem/element.h"
#include "core/reference/attention.h"
#include "core/reference/gradient.h"
#include "core/reference/message.h"
#include "runtime/dispatch/plan.h"
#include "support/argmax_gradient.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/kernel_operands.h"
#include "support/own.h"

typedef struct loaded {
  const kernel_check *check;
  const wlmi_program *program;
  void *kernels[WLMI_MAX_PASSES];
} loaded;

/* Whether the results may come from atomic additions. */
static int may_be_scattered(const operands *o) { return is_product(o) || is_of(o, WLM_SDDMM) || is_argmax(o); }

/* ---- the reference ---------------------------------------------------------------------------------------- */

static wlm_status make_result(operands *o, const array *x) {
  wlmi_reference_result *to = &o->results[x->row->result];
  const int64_t count = x->lines * x->row->columns;
  if (is_position(x)) return wlmi_alloc_array(count, sizeof *to->positions, "reference", (void **)&to->positions);
  WLM_CHECK(wlmi_alloc_array(count, sizeof *to->value, "reference", (void **)&to->value));
  WLM_CHECK(wlmi_alloc_array(count, sizeof *to->scale, "reference", (void **)&to->scale));
  return WLM_OK;
}

/* From op(A)'s order to that of A. */
static wlm_status reorder(const operands *o, int64_t width, double *edges) {
  WLM_FREED double *copy = NULL;
  const wlm_status status = wlmi_alloc_array(o->a.nnz * width, sizeof *copy, "reference", (void **)&copy);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < o->a.nnz * width; i++) copy[o->order[i / width] * width + i % width] = edges[i];
  memcpy(edges, copy, (size_t)(o->a.nnz * width) * sizeof *copy);
  return WLM_OK;
}

/* Edges behind the last row count as 0. */
static wlm_status sddmm_reference(operands *o) {
  const wlm_problem *p = &o->spec.problem;
  const wlmi_reference_result *to = o->results;
  const int64_t held = o->a.nnz * p->heads;
  const wlm_status status = wlmi_reference_edges(&o->a, p, &o->host.args, NULL, o->a.rows, o->a.rowptr, to);
  for (int64_t i = held; i < held + o->rowless * p->heads; i++) {
    to->value[i] =
        o->call.args.beta != 0 ? o->call.args.beta * wlmi_element_get(p->dense_type, o->host.args.dvalues, i) : 0;
    to->scale[i] = fabs(to->value[i]);
  }
  return status;
}

static wlm_status message_reference(operands *o) {
  const wlmi_message_walk walk = {&o->a,    &o->spec.problem, &o->message,       &o->host.message,
                                  o->order, o->a_rowptr,      o->host.args.bias, o->call.args.seed};
  return wlmi_reference_message(&walk, NULL, o->a.rows, o->a.rowptr, o->results);
}

static wlm_status attention_reference(operands *o) {
  const wlmi_attention_walk walk = {&o->a, &o->spec.problem, &o->host.args, o->order};
  return wlmi_reference_attention(&walk, NULL, o->a.rows, o->a.rowptr, o->results);
}

static wlm_status argmax_reference(operands *o) {
  const wlmi_reference_result *db = o->results, *dvalues = &o->results[WLMI_RESULT_OF_ARGMAX_DVALUES];
  gradient_sums sums = {db->value, db->scale, dvalues->value, dvalues->scale};
  argmax_gradient(&o->a, &o->spec.problem, &o->host.args, o->host.args.x, o->winners, o->host.args.b, &sums);
  return WLM_OK;
}

/* The reference gets op(A), and counts positions there. */
static wlm_status product_reference(operands *o) {
  const wlm_problem *p = &o->spec.problem;
  const int64_t mask = p->argmax_type == WLM_I16 ? UINT16_MAX : -1; /* of an empty row, too */
  int64_t *positions = o->results->positions;
  wlm_problem of_rows = *p;
  of_rows.transpose = 0;
  WLM_CHECK(wlmi_reference_rows(&o->a, &of_rows, &o->host.args, NULL, o->a.rows, o->results));
  for (int64_t i = 0; positions && i < o->a.rows * p->n; i++)
    positions[i] = (positions[i] >= 0 ? o->order[positions[i]] : positions[i]) & mask;
  return WLM_OK;
}

static wlm_status make_results(operands *o) {
  wlm_status (*const reference)(operands *) = is_product(o)         ? product_reference
                                              : is_of(o, WLM_SDDMM) ? sddmm_reference
                                              : is_message(o)       ? message_reference
                                              : is_argmax(o)        ? argmax_reference
                                                                    : attention_reference;
  for (const array *x = o->arrays; x < o->arrays + ARRAYS; x++)
    if (is_output(x)) WLM_CHECK(make_result(o, x));
  WLM_CHECK(reference(o));
  for (const array *x = o->arrays; x < o->arrays + ARRAYS; x++) {
    if (!is_output(x) || is_position(x) || x->row->place != WLM_PLACE_EDGE) continue;
    WLM_CHECK(reorder(o, x->row->columns, o->results[x->row->result].value));
    WLM_CHECK(reorder(o, x->row->columns, o->results[x->row->result].scale));
  }
  return WLM_OK;
}

/* ---- on the device ---------------------------------------------------------------------------------------- */

static wlm_status put(wlmi_device *device, array *x) {
  if (!x->host) return WLM_OK;
  if (!x->device) WLM_CHECK(device->ops->allocate(device, bytes(x) + 1, &x->device));
  if (bytes(x)) WLM_CHECK(device->ops->copy_in(device, x->device, x->host, bytes(x)));
  return WLM_OK;
}

static wlm_status put_poison(wlmi_device *device, size_t size, array *x) {
  if (!size) return WLM_OK;
  const wlm_status status = x->device ? WLM_OK : device->ops->allocate(device, size, &x->device);
  return status == WLM_OK ? device->ops->fill(device, NULL, x->device, 0xff, size) : status;
}

static wlm_csr csr_of(const operands *o) {
  const wlmi_csr_host *seen = seen_by_kernels(o);
  return (wlm_csr)CSR(.rows = seen->rows, .cols = seen->cols, .nnz = o->a.nnz + o->rowless,
                      .rowptr = o->arrays[ROWPTR].device, .colind = o->arrays[COLIND].device,
                      .values = o->arrays[VALUES].device, .rowptr_type = o->spec.rowptr_type,
                      .colind_type = o->spec.colind_type, .value_type = o->spec.value_type, .base = o->spec.base);
}

/* Of three runs of gradients by argmax one leaves out dB, and one dvalues. */
static int is_wanted(const operands *o, const array *x, int number) {
  return !is_argmax(o) || number % 3 != (x->row->result == 0 ? 1 : 2);
}

static int is_passed(const operands *o, const wlmi_program *program, const array *x, int number) {
  if (!x->row || (is_output(x) && !is_wanted(o, x, number))) return 0;
  return program->uses_b || is_message(o) || strcmp(x->row->name, "b");
}

/* Prepares while the values of A are NaN, because preparation must read the pattern only. Every other run prepares
 * twice, since a caller may repeat it. */
static wlm_status prepare(wlmi_device *device, operands *o, wlm_plan *plan, int number) {
  array *values = &o->arrays[VALUES];
  if (!wlm_plan_prepared_size(plan)) return WLM_OK;
  if (values->host) WLM_CHECK(device->ops->fill(device, NULL, values->device, 0xff, bytes(values)));
  for (int times = 0; times <= number % 2; times++) WLM_CHECK(wlm_plan_prepare(plan, o->arrays[PREPARED].device, NULL));
  WLM_CHECK(device->ops->synchronize(device, NULL));
  return put(device, values);
}

static wlm_status run(const loaded *l, operands *o, int number) {
  const kernel_check *check = l->check;
  wlmi_device *device = check->device;
  wlmi_spec spec = o->spec;
  wlm_plan plan = {0};
  call c = o->call;
  for (array *x = o->arrays; x < o->arrays + ARRAYS; x++) {
    WLM_CHECK(put(device, x));
    const char *const memory = at(x, x->device);
    if (is_passed(o, l->program, x, number)) memcpy(struct_of(x->row, &c) + x->row->from, &memory, sizeof memory);
  }
  const wlm_csr csr = csr_of(o);
  if (is_product(o)) spec.problem.transpose = o->walks_a; /* C has a line for each column of the matrix that is bound */
  WLM_CHECK(bare_plan_fill(&plan, device, l->program, l->kernels, &csr, &spec));
  plan.bound.args.order = walks_transpose(o) && !o->walks_a ? o->arrays[ORDER].device : NULL;
  plan.bound.args.a_rowptr = is_message(o) || o->walked.rowptr ? o->arrays[A_ROWPTR].device : NULL;
  WLM_CHECK(put_poison(device, wlm_plan_workspace_size(&plan), &o->arrays[WORKSPACE]));
  WLM_CHECK(put_poison(device, wlm_plan_prepared_size(&plan), &o->arrays[PREPARED]));
  if (check->before_run) check->before_run(check->user, number);
  WLM_CHECK(prepare(device, o, &plan, number));
  c.args.attention = wlmi_is_attention(&o->spec.problem) ? &c.attention : NULL;
  c.args.operands = is_message(o) ? &c.message : NULL;
  c.args.workspace = o->arrays[WORKSPACE].device;
  WLM_CHECK(test_execute_args(&plan, c.args));
  WLM_CHECK(device->ops->synchronize(device, NULL));
  for (array *x = o->arrays; x < o->arrays + ARRAYS; x++)
    if (is_output(x)) WLM_CHECK(device->ops->copy_out(device, NULL, x->after, x->device, bytes(x)));
  return WLM_OK;
}

/* ---- comparing -------------------------------------------------------------------------------------------- */

/* The error of a sum of terms grows with their root; 16-bit types are rounded once more at the end. In products of f64
 * the reference has errors as large. */
static double tolerance(const operands *o, const array *x) {
  const wlm_problem *p = &o->spec.problem;
  const wlm_type sums = wlmi_accumulator_type(p->dense_type);
  const double unit = wlmi_element_unit(sums), rounded = x->type == sums ? 0 : wlmi_element_unit(x->type);
  const double inner = is_message(o) ? wlmi_expression_roundings(&o->message.result[x->row->result].value) : 0;
  int64_t longest = 0;
  if (is_argmax(o) && x->row->result == 0)
    return unit * (16 + 8 * sqrt((double)(p->transpose ? o->a.cols : o->a.rows)));
  if (is_of(o, WLM_SDDMM) || is_argmax(o)) return rounded + unit * (16 + 8 * sqrt((double)p->n));
  for (int64_t row = 0; row < o->a.rows; row++)
    if (o->a.rowptr[row + 1] - o->a.rowptr[row] > longest) longest = o->a.rowptr[row + 1] - o->a.rowptr[row];
  if (is_product(o)) return rounded + (sums == WLM_F64 ? 4 : 2) * unit * (8 + 4 * sqrt((double)longest));
  return rounded + unit * (8 + inner + 2 * sqrt((double)(longest + p->n)));
}

/* Whether anything but the lines of an output changed; of one that was not asked for, also these. */
static int is_written_outside(const operands *o, const array *x, int number) {
  const int64_t first = elements_before(x), end = first + elements(x);
  for (int64_t i = 0; i < end + GUARD; i++) {
    const size_t place = (size_t)i * x->size;
    if (is_wanted(o, x, number) && i >= first && i < end && (i - first) % x->ld < x->row->columns) continue;
    if (memcmp(x->host + place, x->after + place, x->size)) return 1;
  }
  return 0;
}

static int64_t index_at(const array *x, int64_t i) {
  if (x->size == sizeof(uint16_t)) return ((const uint16_t *)(const void *)at(x, x->after))[i];
  return wlmi_index_get(x->size == sizeof(int64_t) ? WLM_I64 : WLM_I32, at(x, x->after), i);
}

static wlm_status compare_positions(const wlmi_program *program, const operands *o, const array *x) {
  const int64_t *expected = o->results[x->row->result].positions, columns = x->row->columns;
  for (int64_t i = 0; i < x->lines * columns; i++) {
    const int64_t place = index_at(x, i / columns * x->ld + i % columns);
    if (place != expected[i])
      return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: %s: position [%lld,%lld] is %lld, not %lld", program->variant,
                       o->shape, x->row->name, (long long)(i / columns), (long long)(i % columns), (long long)place,
                       (long long)expected[i]);
  }
  return WLM_OK;
}

static wlm_status compare(const wlmi_program *program, const operands *o, const array *x, int number) {
  const wlmi_reference_result *expected = &o->results[x->row->result];
  if (is_written_outside(o, x, number))
    return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: writes outside of %s", program->variant, o->shape, x->row->name);
  if (!is_wanted(o, x, number)) return WLM_OK;
  if (is_position(x)) return compare_positions(program, o, x);
  const double worst = wlmi_reference_error(x->type, at(x, x->after), x->ld, NULL, x->lines, x->row->columns,
                                            expected->value, expected->scale);
  if (worst <= tolerance(o, x)) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s, alpha %g, beta %g, seed %llu: %s: max_rel_err %.3g, allowed %.3g",
                   program->variant, o->shape, o->call.args.alpha, o->call.args.beta,
                   (unsigned long long)o->call.args.seed, x->row->name, worst, tolerance(o, x));
}

static wlm_status check_one(const loaded *l, int number, test_random *random) {
  operands o = {0};
  wlm_status status;
  WLM_TRY(operands_make(l->check, l->program, number, random, &o));
  WLM_TRY(make_results(&o));
  for (int k = 0; k < l->check->runs; k++) {
    WLM_TRY(run(l, &o, k));
    for (array *x = o.arrays; x < o.arrays + ARRAYS; x++) {
      if (!is_output(x)) continue;
      WLM_TRY(compare(l->program, &o, x, k));
      if (!k) memcpy(x->first, x->after, bytes(x));
      const int repeats = (l->program->deterministic || !may_be_scattered(&o)) && is_wanted(&o, x, k);
      if (repeats && memcmp(x->first, x->after, bytes(x)))
        WLM_TRY(wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: %s: run %d gives other bits than the first", l->program->variant,
                          o.shape, x->row->name, k));
    }
  }
done:
  operands_release(l->check->device, &o);
  return status;
}

wlm_status kernel_check_program(const kernel_check *check, const wlmi_program *program) {
  wlm_status status = WLM_OK;
  loaded l = {.check = check, .program = program};
  wlmi_device *device = check->device;
  wlmi_module *module = NULL;
  test_random random = {check->seed * 0x9E3779B97F4A7C15u | 1};
  WLM_FREED void *image = NULL;
  size_t size;
  WLM_CHECK(device->ops->compile(device, program, &image, &size));
  WLM_CHECK(device->ops->load(device, program, image, size, l.kernels, &module));
  for (int number = 0; number < operands_count(check) && status == WLM_OK; number++)
    status = check_one(&l, number, &random);
  device->ops->unload(device, module);
  return status;
}
