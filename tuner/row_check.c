/* The second reference is a kernel too simple to share a template's faults (row_naive, emitted in f64), or, on the host
 * device, the float64 reference itself.
 *
 * What an element may be off by: the row's tolerance times a bound of sum |a b|, which follows from A alone because
 * |b| <= 1. For max and min the largest message takes the place of the sum, a product's error is relative to itself.
 * Users' expressions, activations and a / b have no such bound, and may turn a rounding into another branch. There a
 * row is wrong if more than half of its columns are off by a thousandth (half types: more) of the row's largest element
 * and of a typical one: that shows rows that were left out, written twice or made of wrong edges. With fewer than
 * LEAST_COLUMNS columns a row proves nothing, and one row of a thousand must be so far off. */
#include "tuner/row_check.h"

#include <math.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/reference/reference.h"

enum { PIECE = 1 << 21, LEAST_COLUMNS = 4 }; /* elements */
static const double max_products = 4e9;      /* that the host computes */
static const double host_share = 0.25;       /* of its memory */

struct wlmi_row_check {
  const wlmi_operands *operands;
  int64_t rows, n;
  double *tolerances, *bounds; /* of each row */
  double *piece;               /* of the reference */
  int64_t piece_rows;
  void *reference; /* rows x n doubles on the device */
  int bounded;     /* whether bounds hold */
  double typical;
  /* Of the present result. */
  int64_t wrong, worst_row;
  double worst;
};

/* ---- bounds -------------------------------------------------------------------------------------------- */

/* Of a message of this value of A; negative where there is none. */
static double message_bound(wlm_message message, double a) {
  switch (message) {
    case WLM_MUL:
    case WLM_COPY_A: return fabs(a);
    case WLM_COPY_B: return 1;
    case WLM_ADD:
    case WLM_SUB:
    case WLM_RSUB: return fabs(a) + 1;
    case WLM_DIV: return 1 / fabs(a);
    default: return -1;
  }
}

static int is_bounded(const wlm_problem *p) {
  return p->reduce != WLM_CUSTOM && !p->custom && !p->epilogue.activation && message_bound(p->message, 1) >= 0 &&
         (p->reduce != WLM_PROD || p->message == WLM_MUL || p->message == WLM_COPY_A || p->message == WLM_COPY_B);
}

static double row_bound(const wlmi_operands *o, int64_t row) {
  const wlmi_csr_host *a = &o->a;
  const wlm_problem *p = &o->spec.problem;
  const int64_t begin = a->rowptr[row], degree = a->rowptr[row + 1] - begin, used = wlmi_edges_of_row(a, p, row);
  double bound = p->reduce == WLM_PROD ? 1 : 0;
  for (int64_t i = begin; i < begin + degree; i++) {
    double largest = 0;
    for (int64_t head = 0; head < p->heads; head++)
      largest = fmax(largest, message_bound(p->message, wlmi_csr_value(a, i * p->heads + head)));
    if (a->shares) largest *= (double)a->shares[i].times * fabs(a->shares[i].factor);
    if (p->reduce == WLM_PROD)
      bound *= fmax(largest, 1);
    else if (p->reduce == WLM_MAX || p->reduce == WLM_MIN)
      bound = fmax(bound, largest);
    else
      bound += largest;
  }
  if (p->reduce == WLM_MEAN && used) bound /= (double)used;
  if (!a->shares && p->sampling.norm == WLM_NORM_UNBIASED && used) bound *= fmax(1, (double)degree / (double)used);
  return bound;
}

static void make_bounds(wlmi_row_check *check) {
  const wlm_execute_args *call = &check->operands->call;
  check->bounded = is_bounded(&check->operands->spec.problem);
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t row = 0; row < check->rows; row++)
    check->bounds[row] =
        check->bounded ? fabs(call->alpha) * row_bound(check->operands, row) + fabs(call->beta) + 1 : 0;
}

/* ---- the reference, by the host -------------------------------------------------------------------------- */

static wlm_status by_host(wlmi_row_check *check) {
  const wlmi_operands *o = check->operands;
  wlm_problem problem = o->spec.problem;
  wlm_execute_args call = o->call;
  int64_t *ids = NULL;
  wlm_status status = WLM_OK;
  if ((double)o->a.nnz * (double)check->n > max_products)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "the host would take too long");
  call.bias = o->bias_host;
  problem.transpose = 0; /* a is op(A) */
  WLM_TRY(wlmi_alloc_array(check->piece_rows, sizeof *ids, "rows to check", (void **)&ids));
  for (int64_t first = 0; first < check->rows; first += check->piece_rows) {
    const int64_t left = check->rows - first, rows = left < check->piece_rows ? left : check->piece_rows;
    for (int64_t i = 0; i < rows; i++) ids[i] = first + i;
    WLM_TRY(wlmi_reference_rows(&o->a, &problem, &call, o->b_host, o->c_old, ids, rows, check->piece, NULL));
    WLM_TRY(o->device->ops->copy_in(o->device, (double *)check->reference + first * check->n, check->piece,
                                    (size_t)(rows * check->n) * sizeof(double)));
  }
done:
  wlmi_free(ids);
  return status;
}

/* ---- the reference, by a kernel ---------------------------------------------------------------------------- */

/* What it needs besides: A, B and the bias in doubles. */
typedef struct wide {
  void *values, *b, *bias, *workspace;
  wlm_matrix *matrix;
  wlm_plan *plan;
} wide;

/* Rows of `ld` elements of the dense type to dense rows of doubles on the device. */
static wlm_status widen(const wlmi_row_check *check, const void *from, int64_t rows, int64_t ld, void *to) {
  const wlmi_operands *o = check->operands;
  wlm_status status = WLM_OK;
  for (int64_t first = 0; first < rows && status == WLM_OK; first += check->piece_rows) {
    const int64_t count = rows - first < check->piece_rows ? rows - first : check->piece_rows;
#pragma omp parallel for
    for (int64_t i = 0; i < count; i++)
      wlmi_elements_read(o->spec.problem.dense_type, from, (first + i) * ld, check->n, check->piece + i * check->n);
    status = o->device->ops->copy_in(o->device, (double *)to + first * check->n, check->piece,
                                     (size_t)(count * check->n) * sizeof(double));
  }
  return status;
}

static wlm_status widen_values(const wlmi_operands *o, wide *w) {
  const wlm_csr *csr = wlmi_matrix_csr(o->matrix);
  const int64_t count = csr->nnz * o->spec.problem.heads;
  const size_t size = wlmi_type_size(csr->value_type);
  void *narrow = NULL;
  double *values = NULL;
  wlm_status status = WLM_OK;
  if (!csr->values) return status;
  WLM_TRY(wlmi_alloc_array(count, size, "values", &narrow));
  WLM_TRY(wlmi_alloc_array(count, sizeof *values, "values", (void **)&values));
  WLM_TRY(o->device->ops->copy_out(o->device, narrow, csr->values, (size_t)count * size));
  wlmi_elements_read(csr->value_type, narrow, 0, count, values);
  WLM_TRY(o->device->ops->allocate(o->device, (size_t)count * sizeof *values + 1, &w->values));
  status = o->device->ops->copy_in(o->device, w->values, values, (size_t)count * sizeof *values);
done:
  wlmi_free(narrow);
  wlmi_free(values);
  return status;
}

static wlm_status make_matrix(const wlmi_operands *o, wide *w) {
  wlm_csr csr = *wlmi_matrix_csr(o->matrix);
  wlm_matrix_options options = WLM_MATRIX_OPTIONS_INIT;
  const wlm_status status = widen_values(o, w);
  if (status != WLM_OK) return status;
  csr.values = w->values;
  csr.value_type = WLM_F64;
  options.grade = WLM_STATS_GIVEN;
  options.stats = wlm_matrix_stats(o->matrix);
  return wlm_matrix_create(o->context, &csr, &options, &w->matrix);
}

/* The first variant of the family. */
static wlm_status make_plan(const wlmi_operands *o, const char *family, wide *w) {
  wlm_problem problem = o->spec.problem;
  const wlmi_candidate_list *list = NULL;
  const char *name = NULL;
  wlmi_spec spec;
  wlm_status status;
  problem.dense_type = WLM_F64;
  problem.want_argmax = 0;
  WLM_TRY(wlmi_context_spec(o->context, w->matrix, &problem, &spec));
  WLM_TRY(wlmi_generator_describe(wlmi_context_generator(o->context), &spec, &o->device->info.limits, &list));
  for (int64_t i = 0; i < list->count && !name; i++)
    if (!strncmp(list->candidates[i].variant, family, strlen(family)) && !list->candidates[i].prepares)
      name = list->candidates[i].variant;
  if (!name) WLM_TRY(wlmi_fail(WLM_ERR_UNSUPPORTED, "%s has no kernel for it in f64", family));
  WLM_TRY(wlm_plan_create_variant(o->context, w->matrix, &problem, name, &w->plan));
  const size_t workspace = wlm_plan_workspace_size(w->plan);
  if (workspace) status = o->device->ops->allocate(o->device, workspace, &w->workspace);
done:
  wlmi_candidates_drop(list);
  return status;
}

static wlm_status by_kernel(wlmi_row_check *check, const char *family) {
  const wlmi_operands *o = check->operands;
  wlmi_device *device = o->device;
  wlm_execute_args call = o->call;
  wide w = {0};
  wlm_status status;
  WLM_TRY(make_matrix(o, &w));
  WLM_TRY(make_plan(o, family, &w));
  WLM_TRY(device->ops->allocate(device, (size_t)(o->a.cols * check->n) * sizeof(double) + 1, &w.b));
  WLM_TRY(widen(check, o->b_host, o->a.cols, call.ldb, w.b));
  if (o->bias_host) {
    WLM_TRY(device->ops->allocate(device, (size_t)check->n * sizeof(double), &w.bias));
    WLM_TRY(widen(check, o->bias_host, 1, check->n, w.bias));
  }
  if (o->c_old) WLM_TRY(widen(check, o->c_old, check->rows, call.ldc, check->reference));
  call.ldb = call.ldc = check->n;
  call.b = w.b;
  call.c = check->reference;
  call.bias = w.bias;
  call.argmax = NULL;
  call.workspace = w.workspace;
  call.workspace_size = wlm_plan_workspace_size(w.plan);
  call.stream = NULL;
  WLM_TRY(wlm_plan_execute(w.plan, &call));
  status = device->ops->synchronize(device, NULL);
done:
  wlm_plan_destroy(w.plan);
  wlm_matrix_destroy(w.matrix);
  device->ops->release(device, w.values);
  device->ops->release(device, w.b);
  device->ops->release(device, w.bias);
  device->ops->release(device, w.workspace);
  return status;
}

/* ---- one for many results ---------------------------------------------------------------------------------- */

static wlm_status make(wlmi_row_check *check, const char *family, const double *tolerances) {
  wlmi_device *device = check->operands->device;
  const double bytes = (double)check->rows * (double)check->n * sizeof(double);
  wlm_status status;
  if (device->info.limits.target == WLM_TARGET_HOST && bytes > host_share * (double)device->info.memory_bytes)
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a reference of %.1f GB", bytes / 1e9);
  check->piece_rows = check->n < PIECE ? PIECE / check->n : 1;
  WLM_TRY(wlmi_alloc_array(check->rows, sizeof *check->tolerances, "tolerances", (void **)&check->tolerances));
  memcpy(check->tolerances, tolerances, (size_t)check->rows * sizeof *tolerances);
  WLM_TRY(wlmi_alloc_array(check->rows, sizeof *check->bounds, "bounds", (void **)&check->bounds));
  WLM_TRY(wlmi_alloc_array(check->piece_rows * check->n, sizeof *check->piece, "reference", (void **)&check->piece));
  WLM_TRY(device->ops->allocate(device, (size_t)bytes, &check->reference));
  make_bounds(check);
  status = family ? by_kernel(check, family) : WLM_ERR_UNSUPPORTED;
  if (status != WLM_OK) status = by_host(check);
done:
  return status;
}

wlm_status wlmi_row_check_create(const wlmi_operands *operands, const char *family, const double *tolerances,
                                 double typical, wlmi_row_check **out) {
  *out = NULL;
  if (operands->spec.problem.operation != WLM_SPMM) return WLM_OK;
  wlmi_row_check *check = wlmi_alloc_zero(1, sizeof *check);
  if (!check) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a check of rows");
  *check = (wlmi_row_check){
      .operands = operands, .rows = operands->result_rows, .n = operands->result_columns, .typical = typical};
  if (make(check, family, tolerances) == WLM_OK) {
    *out = check;
    return WLM_OK;
  }
  wlmi_log(WLM_LOG_INFO, "only some rows of results are compared: %s", wlm_error_detail());
  wlmi_clear_error();
  wlmi_row_check_destroy(check);
  return WLM_OK;
}

void wlmi_row_check_destroy(wlmi_row_check *check) {
  if (!check) return;
  check->operands->device->ops->release(check->operands->device, check->reference);
  wlmi_free(check->tolerances);
  wlmi_free(check->bounds);
  wlmi_free(check->piece);
  wlmi_free(check);
}

/* ---- one result -------------------------------------------------------------------------------------------- */

void wlmi_row_check_begin(wlmi_row_check *check) {
  check->wrong = 0;
  check->worst = 0;
  check->worst_row = -1;
}

/* How far an element is off; 0 where nothing can be said, since the reference does not fit the type. */
static double difference(wlm_type type, double value, double reference) {
  if (isnan(reference)) return isnan(value) ? 0 : INFINITY;
  if (!isfinite(wlmi_element_round(type, reference))) return isnan(value) ? INFINITY : 0;
  return isnan(value) ? INFINITY : fabs(value - reference);
}

/* Times what it may be off by. */
static double bounded_excess(const wlmi_row_check *check, int64_t row, const double *values, const double *reference) {
  const wlm_problem *p = &check->operands->spec.problem;
  const double beta = fabs(check->operands->call.beta), least = wlmi_element_least(p->dense_type);
  double worst = 0;
  if (!isfinite(wlmi_element_round(p->dense_type, check->bounds[row]))) return 0;
  for (int64_t j = 0; j < check->n; j++) {
    const double scale = p->reduce == WLM_PROD ? fabs(reference[j]) + 2 * (1 + beta) : check->bounds[row];
    const double off = difference(p->dense_type, values[j], reference[j]);
    worst = fmax(worst, off / (check->tolerances[row] * scale + least));
  }
  return worst;
}

/* The median over the columns. */
static double typical_excess(const wlmi_row_check *check, const double *values, const double *reference) {
  const wlm_type type = check->operands->spec.problem.dense_type;
  const double loose = fmax(1e-3, 32 * wlmi_element_unit(type));
  double largest = check->typical;
  int64_t off = 0;
  for (int64_t j = 0; j < check->n; j++)
    if (isfinite(reference[j])) largest = fmax(largest, fabs(reference[j]));
  for (int64_t j = 0; j < check->n; j++) off += difference(type, values[j], reference[j]) > loose * largest;
  return 2 * off > check->n ? INFINITY : 0;
}

wlm_status wlmi_row_check_add(wlmi_row_check *check, int64_t first_row, int64_t rows, const void *c, int64_t ldc,
                              double leeway) {
  const wlmi_operands *o = check->operands;
  const int64_t n = check->n;
  wlm_status status = WLM_OK;
  for (int64_t first = 0; first < rows && status == WLM_OK; first += check->piece_rows) {
    const int64_t count = rows - first < check->piece_rows ? rows - first : check->piece_rows;
    status = o->device->ops->copy_out(o->device, check->piece, (double *)check->reference + (first_row + first) * n,
                                      (size_t)(count * n) * sizeof(double));
    if (status != WLM_OK) break;
    int64_t starved = 0;
#pragma omp parallel reduction(+ : starved)
    {
      double *values = wlmi_alloc((size_t)n * sizeof *values);
#pragma omp for schedule(static)
      for (int64_t i = 0; i < count; i++) {
        const int64_t row = first_row + first + i;
        if (!values) {
          starved++;
          continue;
        }
        wlmi_elements_read(o->spec.problem.dense_type, c, (first + i) * ldc, n, values);
        const double excess = check->bounded ? bounded_excess(check, row, values, check->piece + i * n)
                                             : typical_excess(check, values, check->piece + i * n);
        if (excess <= leeway) continue;
#pragma omp critical
        {
          check->wrong++;
          if (check->worst_row < 0 || excess > check->worst || (excess == check->worst && row < check->worst_row)) {
            check->worst = excess;
            check->worst_row = row;
          }
        }
      }
      wlmi_free(values);
    }
    if (starved) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a row of C");
  }
  return status;
}

wlm_status wlmi_row_check_finish(const wlmi_row_check *check) {
  const int proves = check->bounded || check->n >= LEAST_COLUMNS;
  if (!check->wrong || (!proves && 1000 * check->wrong < check->rows)) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "row %lld differs from a second reference in float64; %lld of %lld rows are wrong",
                   (long long)check->worst_row, (long long)check->wrong, (long long)check->rows);
}
