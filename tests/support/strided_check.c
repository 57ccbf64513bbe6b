#include "support/strided_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/csr/transpose.h"
#include "core/problem/element.h"
#include "core/problem/spec_key.h"
#include "core/reference/gradient.h"
#include "core/reference/reference.h"
#include "generator/generator.h"
#include "support/argmax_gradient.h"
#include "support/defaults.h"
#include "support/drawn.h"
#include "support/own.h"
#include "support/seed.h"

enum { GAP = 3, PRODUCTS = 3 };

const strided_product strided_products[STRIDED_PRODUCTS] = {
    {.name = "sum"},
    {.name = "max of a pattern", .reduce = WLM_MAX, .pattern = 1},
    {.name = "mean in f16", .reduce = WLM_MEAN, .type = WLM_F16},
    {.name = "product in f64", .reduce = WLM_PROD, .type = WLM_F64},
    {.name = "epilogue", .epilogue = 1},
    {.name = "heads", .heads = 1},
    {.name = "sampled", .sample = WLM_SAMPLE_FASTRAND},
    {.name = "transposed", .transpose = 1},
    {.name = "custom", .reduce = WLM_CUSTOM, .custom = "message=a*b;init=0;reduce=acc+x;combine=reduce;finish=acc*2"},
    {.name = "argmax", .reduce = WLM_MAX, .argmax = 1},
    {.name = "argmax with heads", .reduce = WLM_MIN, .argmax = 1, .heads = 1},
    {.name = "sddmm", .operation = WLM_SDDMM},
    {.name = "sddmm with heads", .operation = WLM_SDDMM, .heads = 1, .epilogue = 1},
};

const strided_layout strided_layouts[STRIDED_LAYOUTS] = {
    {1, WLM_COLUMN_MAJOR, WLM_COLUMN_MAJOR, STRIDED_SHARED, STRIDED_BEHIND, STRIDED_SHARED},
    {1, WLM_COLUMN_MAJOR, WLM_ROW_MAJOR, STRIDED_SHARED, STRIDED_BEHIND, STRIDED_SHARED},
    {1, WLM_ROW_MAJOR, WLM_COLUMN_MAJOR, STRIDED_SHARED, STRIDED_BEHIND, STRIDED_SHARED},
    {PRODUCTS, WLM_ROW_MAJOR, WLM_ROW_MAJOR, STRIDED_BEHIND, STRIDED_BEHIND, STRIDED_BEHIND},
    {PRODUCTS, WLM_ROW_MAJOR, WLM_ROW_MAJOR, STRIDED_SIDE_BY_SIDE, STRIDED_SIDE_BY_SIDE, STRIDED_SHARED},
    {PRODUCTS, WLM_ROW_MAJOR, WLM_ROW_MAJOR, STRIDED_SHARED, STRIDED_BEHIND, STRIDED_BEHIND},
    {PRODUCTS, WLM_COLUMN_MAJOR, WLM_COLUMN_MAJOR, STRIDED_BEHIND, STRIDED_BEHIND, STRIDED_BEHIND},
    {PRODUCTS, WLM_COLUMN_MAJOR, WLM_ROW_MAJOR, STRIDED_SIDE_BY_SIDE, STRIDED_SIDE_BY_SIDE, STRIDED_SHARED},
};

/* ---- arrays --------------------------------------------------------------------------------------------- */

typedef struct array {
  wlmi_device *device;
  wlm_type type;
  int64_t batch, lines, n, ld, stride;
  int by_columns;
  size_t bytes;
  char *host, *memory; /* the same, memory: the device's */
} array;

static int64_t place_of(const array *a, int64_t k, int64_t line, int64_t column) {
  return k * a->stride + (a->by_columns ? column * a->ld + line : line * a->ld + column);
}

static array array_of(wlmi_device *device, wlm_type type, int64_t batch, int64_t lines, int64_t n, wlm_order order,
                      strided_place place) {
  array a = {.device = device, .type = type, .batch = batch, .lines = lines, .n = n};
  a.by_columns = order == WLM_COLUMN_MAJOR;
  const int64_t count = a.by_columns ? n : lines, used = a.by_columns ? lines : n;
  a.ld = (place == STRIDED_SIDE_BY_SIDE ? batch * (used + 1) : used) + GAP;
  a.stride = place == STRIDED_SHARED ? 0 : place == STRIDED_SIDE_BY_SIDE ? used + 1 : (count - 1) * a.ld + used + GAP;
  a.bytes = (size_t)(place_of(&a, batch - 1, lines - 1, n - 1) + 1) * wlmi_type_size(type);
  assert_non_null(a.host = malloc(a.bytes));
  memset(a.host, 0xff, a.bytes);
  assert_status(WLM_OK, device->ops->allocate(device, a.bytes, (void **)&a.memory));
  return a;
}

static void array_end(array *a) {
  a->device->ops->release(a->device, a->memory);
  free(a->host);
}

static double get(const array *a, int64_t k, int64_t line, int64_t column) {
  return wlmi_element_get(a->type, a->host, place_of(a, k, line, column));
}

/* Draws small numbers, of which sums are exact. */
static void draw(array *a, test_random *random, int is_positive) {
  for (int64_t k = 0; k < (a->stride ? a->batch : 1); k++)
    for (int64_t i = 0; i < a->lines; i++)
      for (int64_t j = 0; j < a->n; j++)
        wlmi_element_put(a->type, a->host, place_of(a, k, i, j),
                         is_positive ? 1 + (double)test_draw(random, 3) / 2 : (double)test_draw(random, 9) - 4);
}

static void to_device(const array *a) {
  assert_status(WLM_OK, a->device->ops->copy_in(a->device, a->memory, a->host, a->bytes));
}

static void to_host(const array *a) {
  assert_status(WLM_OK, a->device->ops->copy_out(a->device, NULL, a->host, a->memory, a->bytes));
}

static int32_t position_at(const array *a, int64_t k, int64_t line, int64_t column) {
  int32_t position;
  memcpy(&position, a->host + (size_t)place_of(a, k, line, column) * sizeof position, sizeof position);
  return position;
}

/* ---- one product of a batch, as the reference takes it -------------------------------------------------- */

/* Row-major, without gaps. */
static void *packed(const array *a, int64_t k) {
  char *to = malloc((size_t)(a->lines * a->n) * wlmi_type_size(a->type) + 1);
  assert_non_null(to);
  for (int64_t i = 0; i < a->lines; i++)
    for (int64_t j = 0; j < a->n; j++) wlmi_element_put(a->type, to, i * a->n + j, get(a, k, i, j));
  return to;
}

typedef struct calculation {
  const strided_product *product;
  wlm_context *context;
  wlmi_device *device;
  drawn drawn; /* the pattern and the bias */
  wlm_problem problem;
  wlm_csr csr; /* on the device */
  wlm_execute_args args;
  array b, c, values, rowptr, colind, bias; /* c: the result, of an SDDMM dvalues */
  array x, argmax, db, dvalues;             /* of an SDDMM, and of argmax with its gradients */
} calculation;

static int is_sddmm(const calculation *q) { return q->product->operation == WLM_SDDMM; }

/* op(A) of product k in host memory. */
static wlmi_csr_host matrix_of(const calculation *q, int64_t k, int64_t heads) {
  const wlm_csr *from = &q->drawn.csr;
  wlmi_csr_host a = {.rows = from->rows, .cols = from->cols, .nnz = from->nnz}, op;
  assert_non_null(a.rowptr = malloc((size_t)(a.rows + 1) * sizeof *a.rowptr));
  assert_non_null(a.colind = malloc((size_t)(a.nnz + 1) * sizeof *a.colind));
  for (int64_t i = 0; i <= a.rows; i++) a.rowptr[i] = q->drawn.rowptr[i];
  memcpy(a.colind, q->drawn.colind, (size_t)a.nnz * sizeof *a.colind);
  if (!q->product->pattern) {
    assert_non_null(a.values = malloc((size_t)(a.nnz * heads + 1) * sizeof *a.values));
    for (int64_t p = 0; p < a.nnz * heads; p++) a.values[p] = (float)get(&q->values, k, p / heads, p % heads);
  }
  if (!q->product->transpose) return a;
  assert_status(WLM_OK, wlmi_csr_host_transpose(&a, &op));
  wlmi_csr_host_release(&a);
  return op;
}

static void check_numbers(const calculation *q, const array *found, int64_t k, const double *value, const double *scale,
                          const char *what) {
  FREED void *numbers = packed(found, k);
  const double error = wlmi_reference_error(found->type, numbers, found->n, NULL, found->lines, found->n, value, scale);
  if (!(error <= 8 * wlmi_element_unit(found->type)))
    fail_msg("%s: %s: product %lld of %lld differs from float64 by %g", q->product->name, what, (long long)k,
             (long long)found->batch, error);
}

static void check_positions(const calculation *q, int64_t k, const int64_t *expected) {
  for (int64_t i = 0; i < q->argmax.lines; i++)
    for (int64_t j = 0; j < q->argmax.n; j++)
      assert_int_equal(position_at(&q->argmax, k, i, j), expected[i * q->argmax.n + j]);
}

/* The problem and the call of product k, with arrays of the host. */
static wlm_problem one_of(const calculation *q) {
  wlm_problem one = q->problem;
  one.batch = 1, one.transpose = 0, one.b_order = one.c_order = WLM_ROW_MAJOR;
  return one;
}

static void check_product(const calculation *q, const array *before, int64_t k, const char *what) {
  const int64_t count = q->c.lines * q->c.n;
  const wlm_problem one = one_of(q);
  HELD(wlmi_csr_host) a = matrix_of(q, k, one.heads);
  wlm_execute_args call = q->args;
  double *value = malloc((size_t)(count + 1) * sizeof *value), *scale = malloc((size_t)(count + 1) * sizeof *scale);
  int64_t *positions = q->product->argmax ? malloc((size_t)(count + 1) * sizeof *positions) : NULL;
  void *b = packed(&q->b, k), *c = packed(before, k), *x = is_sddmm(q) ? packed(&q->x, k) : NULL;
  const wlmi_reference_result result = {value, scale, positions};
  assert_true(value && scale);
  call.b = b, call.c = call.dvalues = c, call.x = x, call.ldb = call.ldc = one.n, call.bias = q->bias.host;
  assert_status(WLM_OK, is_sddmm(q) ? wlmi_reference_edges(&a, &one, &call, NULL, a.rows, a.rowptr, &result)
                                    : wlmi_reference_rows(&a, &one, &call, NULL, q->c.lines, &result));
  check_numbers(q, &q->c, k, value, scale, what);
  if (positions) check_positions(q, k, positions);
  free(value), free(scale), free(positions), free(b), free(c), free(x);
}

/* What lies between the elements stays NaN. */
static void check_gaps(const calculation *q, const array *a, const char *what) {
  const size_t size = wlmi_type_size(a->type);
  for (int64_t k = 0; k < a->batch; k++)
    for (int64_t i = 0; i < a->lines; i++)
      for (int64_t j = 0; j < a->n; j++) memset(a->host + (size_t)place_of(a, k, i, j) * size, 0xff, size);
  for (size_t i = 0; i < a->bytes; i++)
    if ((unsigned char)a->host[i] != 0xff) fail_msg("%s: %s: wrote between its elements", q->product->name, what);
}

static void check_results(calculation *q, const array *before, const char *what) {
  assert_status(WLM_OK, q->device->ops->synchronize(q->device, NULL));
  to_host(&q->c);
  if (q->product->argmax) to_host(&q->argmax);
  for (int64_t k = 0; k < q->c.batch; k++) check_product(q, before, k, what);
  check_gaps(q, &q->c, what);
  if (q->product->argmax) check_gaps(q, &q->argmax, what);
}

/* ---- gradients by argmax -------------------------------------------------------------------------------- */

static void check_gradients_of(const calculation *q, int64_t k) {
  const wlm_problem one = one_of(q);
  const int64_t n = one.n, b_count = q->db.lines * n, values = q->dvalues.lines * one.heads;
  const wlm_execute_args call = EXECUTE_ARGS(.alpha = 1);
  HELD(wlmi_csr_host) a = matrix_of(q, k, one.heads);
  void *b = packed(&q->b, k), *x = packed(&q->x, k);
  int64_t *positions = malloc((size_t)(q->argmax.lines * n + 1) * sizeof *positions);
  double *sums = calloc((size_t)(2 * (b_count + values) + 1), sizeof *sums);
  assert_true(positions && sums);
  gradient_sums found = {sums, sums + b_count, sums + 2 * b_count, sums + 2 * b_count + values};
  for (int64_t i = 0; i < q->argmax.lines; i++)
    for (int64_t j = 0; j < n; j++) positions[i * n + j] = position_at(&q->argmax, k, i, j);
  argmax_gradient(&a, &one, &call, x, positions, b, &found);
  check_numbers(q, &q->db, k, found.db, found.db_scale, "argmax_db");
  if (a.nnz) check_numbers(q, &q->dvalues, k, found.dvalues, found.dvalues_scale, "argmax_dvalues");
  free(b), free(x), free(positions), free(sums);
}

/* Of the positions that a call gave. Where all products share B there is no place for a gradient of each. */
static void check_gradients(calculation *q) {
  wlm_execute_args args = q->args;
  wlm_problem gradient = q->problem;
  if (!q->product->argmax || (q->b.batch > 1 && !q->b.stride)) return;
  args.x = q->x.memory, args.argmax_db = q->db.memory, args.argmax_dvalues = q->dvalues.memory;
  args.dvalues_stride = q->dvalues.stride;
  gradient.operation = WLM_ARGMAX_GRADIENT, gradient.epilogue = (wlm_epilogue){0, NULL};
  assert_status(WLM_OK, wlm_spmm(q->context, &q->csr, &gradient, &args));
  assert_status(WLM_OK, q->device->ops->synchronize(q->device, NULL));
  to_host(&q->argmax), to_host(&q->db), to_host(&q->dvalues);
  for (int64_t k = 0; k < q->c.batch; k++) check_gradients_of(q, k);
  check_gaps(q, &q->db, "argmax_db"), check_gaps(q, &q->dvalues, "argmax_dvalues");
}

/* ---- calls ---------------------------------------------------------------------------------------------- */

static void run_plan(calculation *q, const wlm_matrix *matrix, const char *variant) {
  wlm_execute_args args = q->args;
  OWNED(wlm_plan) *plan = NULL;
  void *prepared = NULL;
  assert_status(WLM_OK, variant ? wlm_plan_create_variant(q->context, matrix, &q->problem, variant, &plan)
                                : wlm_plan_create(q->context, matrix, &q->problem, &plan));
  args.workspace_size = wlm_plan_workspace_size(plan);
  if (args.workspace_size)
    assert_status(WLM_OK, q->device->ops->allocate(q->device, args.workspace_size, &args.workspace));
  if (wlm_plan_prepared_size(plan)) {
    assert_status(WLM_OK, q->device->ops->allocate(q->device, wlm_plan_prepared_size(plan), &prepared));
    assert_status(WLM_OK, wlm_plan_prepare(plan, prepared, NULL));
  }
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  assert_status(WLM_OK, q->device->ops->synchronize(q->device, NULL));
  q->device->ops->release(q->device, args.workspace);
  q->device->ops->release(q->device, prepared);
}

/* A candidate of each family, or of those that this run draws. Returns the number of all families. */
static int run_families(calculation *q, const wlm_matrix *matrix, const array *before, test_random *random,
                        int one_in) {
  char key[WLMI_SPEC_KEY], text[WLMI_SPEC_KEY + 2 * WLMI_VARIANT_NAME];
  int families = 0;
  GET(wlmi_spec, spec, wlmi_spec_make(&q->problem, &q->csr, &spec));
  OWN(wlmi_candidates, list,
      wlmi_generator_describe(wlmi_context_generator(q->context), &spec, &q->device->info.limits, &list));
  wlmi_spec_key(&spec, key);
  for (int64_t i = 0, end; i < list->count; i = end, families++) {
    for (end = i + 1; end < list->count && list->candidates[end].value.family == list->candidates[i].value.family;)
      end++;
    const char *variant = list->candidates[i + (int64_t)test_draw(random, (uint64_t)(end - i))].variant;
    snprintf(text, sizeof text, "%s %s n=%lld %s", q->device->info.kind, variant, (long long)q->problem.n, key);
    if (!test_is_drawn(text, one_in)) continue;
    to_device(before);
    run_plan(q, matrix, variant);
    check_results(q, before, variant);
  }
  return families;
}

/* An SDDMM has alpha and beta alone. */
static int has_epilogue(const strided_product *product) { return product->epilogue && product->operation == WLM_SPMM; }

static wlm_problem problem_of(const strided_product *product, const strided_layout *layout, int64_t n) {
  return (wlm_problem)PROBLEM(.n = n, .operation = product->operation, .reduce = product->reduce,
                              .custom = product->custom, .dense_type = product->type, .want_argmax = product->argmax,
                              .transpose = product->transpose, .heads = product->heads ? DRAWN_HEADS : 1,
                              .epilogue = (wlm_epilogue){has_epilogue(product), has_epilogue(product) ? "relu" : NULL},
                              .sampling.sample = product->sample, .sampling.width = product->sample ? 8 : 0,
                              .b_order = layout->b_order, .c_order = layout->c_order, .batch = layout->batch);
}

/* An int32 array as one of the device. */
static array index_array(wlmi_device *device, const int32_t *from, int64_t count) {
  array a = array_of(device, WLM_F32, 1, 1, count ? count : 1, WLM_ROW_MAJOR, STRIDED_BEHIND);
  memcpy(a.host, from, (size_t)count * sizeof *from);
  to_device(&a);
  return a;
}

/* An array that lies as values do, with gaps between products alone. */
static array edge_array(const calculation *q, wlm_type type, int64_t batch, strided_place place) {
  array a =
      array_of(q->device, type, batch, q->drawn.csr.nnz ? q->drawn.csr.nnz : 1, q->problem.heads, WLM_ROW_MAJOR, place);
  a.ld = q->problem.heads;
  return a;
}

static void begin(calculation *q, const strided_layout *layout, test_random *random) {
  const strided_product *product = q->product;
  const int is_product = product->reduce == WLM_PROD;
  draw_matrix(&q->drawn, random, 1);
  const wlm_csr *a = &q->drawn.csr;
  const int64_t b_lines = product->transpose ? a->rows : a->cols, c_lines = product->transpose ? a->cols : a->rows;
  q->b = array_of(q->device, product->type, layout->batch, b_lines, q->problem.n, layout->b_order, layout->b);
  q->x = array_of(q->device, product->type, layout->batch, c_lines, q->problem.n, layout->c_order, layout->c);
  q->c = is_sddmm(q)
             ? edge_array(q, product->type, layout->batch, STRIDED_BEHIND)
             : array_of(q->device, product->type, layout->batch, c_lines, q->problem.n, layout->c_order, layout->c);
  q->argmax = array_of(q->device, WLM_F32, layout->batch, c_lines, q->problem.n, layout->c_order, layout->c);
  q->db = array_of(q->device, WLM_F32, layout->batch, b_lines, q->problem.n, layout->b_order, layout->b);
  q->dvalues = edge_array(q, WLM_F32, layout->batch, STRIDED_BEHIND);
  q->values = edge_array(q, product->type, layout->batch, layout->values);
  q->bias = array_of(q->device, product->type, 1, 1, q->problem.n, WLM_ROW_MAJOR, STRIDED_BEHIND);
  q->rowptr = index_array(q->device, q->drawn.rowptr, a->rows + 1);
  q->colind = index_array(q->device, q->drawn.colind, a->nnz);
  draw(&q->b, random, is_product), draw(&q->values, random, is_product), draw(&q->bias, random, 0);
  draw(&q->x, random, 0);
  if (product->epilogue) draw(&q->c, random, 0);
  array *const given[] = {&q->b, &q->c, &q->values, &q->bias, &q->x, &q->argmax, &q->db, &q->dvalues};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) to_device(given[i]);
  q->csr = *a;
  q->csr.rowptr = q->rowptr.memory, q->csr.colind = q->colind.memory;
  q->csr.values = product->pattern ? NULL : q->values.memory, q->csr.value_type = product->type;
  q->args = (wlm_execute_args)WLM_EXECUTE_ARGS_INIT;
  q->args.b = q->b.memory, q->args.ldb = q->b.ld, q->args.ldc = q->x.ld;
  q->args.b_stride = q->b.stride, q->args.c_stride = q->x.stride, q->args.values_stride = q->values.stride;
  if (is_sddmm(q))
    q->args.dvalues = q->c.memory, q->args.x = q->x.memory, q->args.dvalues_stride = q->c.stride;
  else
    q->args.c = q->c.memory;
  if (product->argmax) q->args.argmax = q->argmax.memory;
  if (has_epilogue(product)) q->args.bias = q->bias.memory;
  if (product->epilogue) q->args.alpha = 2, q->args.beta = 3;
  if (product->sample) q->args.seed = 12345;
}

int strided_check(wlm_context *context, const strided_product *product, const strided_layout *layout, int64_t n,
                  int one_in, uint64_t seed) {
  static calculation q;
  test_random random = {seed * 0x9E3779B97F4A7C15u | 1};
  int families = 1;
  q = (calculation){.product = product, .context = context, .device = wlmi_context_device(context)};
  q.problem = problem_of(product, layout, n);
  begin(&q, layout, &random);
  array before = q.c;
  assert_non_null(before.host = malloc(before.bytes));
  memcpy(before.host, q.c.host, before.bytes);
  assert_status(WLM_OK, wlm_spmm(context, &q.csr, &q.problem, &q.args));
  check_results(&q, &before, "wlm_spmm");
  check_gradients(&q);
  GET(wlm_matrix *, matrix, wlm_matrix_create(context, &q.csr, NULL, &matrix));
  if (one_in) {
    families = run_families(&q, matrix, &before, &random, one_in);
  } else {
    to_device(&before);
    run_plan(&q, matrix, NULL);
    check_results(&q, &before, "a plan");
  }
  wlm_matrix_destroy(matrix);
  free(before.host);
  array *const all[] = {&q.b, &q.c, &q.values, &q.bias, &q.rowptr, &q.colind, &q.x, &q.argmax, &q.db, &q.dvalues};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) array_end(all[i]);
  return families;
}
