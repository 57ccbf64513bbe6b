/* Decides whether a result is right.
 *
 * Argmax indices must match exactly (core/reference/reference.h gives the reason why they can). For numbers:
 *
 * Rows are compared with float64, all of them if that is cheap. Otherwise some rows are compared with float64, and
 * every row by a check of all columns (tuner/column_check.h) or, if the operator has none, with a second reference
 * (tuner/row_check.h); C is then read in pieces.
 *
 * Errors are measured against sum |a b|, the scale at which float32 arithmetic itself works: with u = 2^-24 the worst
 * case of adding d products in any order is d u of it, and the expected error of independent roundings is sqrt(d) u
 * (Higham & Mary, "A new approach to probabilistic rounding error analysis", 2019). B is random, so roundings are
 * independent, and the tolerance is u (8 + 2 sqrt(d)): 8 u for the product, alpha, beta, the division of a mean and the
 * store, 2 sqrt(d) for the additions. For f64, u = 2^-53, it is twice that, because the reference rounds as much.
 * 16-bit types are accumulated in f32 and rounded once at the end, which adds their own u. A product of d messages is
 * rounded twice for each, and each rounding counts in full. Sums of equal terms are rounded in the same direction each
 * time, so their tolerance is d u: messages without B, and FastRand as published, whose stride of 577 takes the same
 * edge S times in a row of 577 edges. Repeated entries of a matrix add u for each repetition. Each row has the
 * tolerance of its own length; a wrong edge in a row of d edges causes an error of about 1 / d, far above the tolerance
 * for any d below a million. */
#include "tuner/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/problem/sampling.h"
#include "core/reference/gradient.h"
#include "core/reference/reference.h"
#include "tuner/attention_operands.h"
#include "tuner/column_check.h"
#include "tuner/message_check.h"
#include "tuner/message_operands.h"
#include "tuner/row_check.h"

enum { RANDOM_ROWS = 4096, RANDOM_EDGES = 1 << 16, NAMED_ROWS = 4, SPOTS = 32, PIECE = 1 << 24 }; /* elements */
static const double max_products = 1e8;  /* above this only some rows are compared */
static const double max_elements = 32e6; /* 20 bytes each */
static const double spot_numbers = 1e6;  /* of edges, that a few rows of a message may have */

struct wlmi_verifier {
  wlmi_operands *operands;
  int64_t *rows; /* rows of the result (for an SDDMM edges x heads); ascending and distinct */
  int64_t count;
  double *reference, *scale;   /* count x columns of the result */
  char *result;                /* of the dense type, as the piece */
  double *errors;              /* of each row */
  double *tolerances;          /* the same */
  int64_t *positions;          /* count x columns; NULL if the problem has none */
  char *arg;                   /* of their type, as the result */
  wlmi_column_check *columns;  /* NULL if every row is compared, or the operator has no column check */
  wlmi_row_check *all_rows;    /* NULL if there is a column check, or every row is compared anyway */
  char *piece;                 /* a piece of C, for either check */
  wlmi_message_check *message; /* compares all results of a message; NULL = it is another operation */
  wlmi_verifier *spots;        /* compares a few of the rows; NULL if all are few */
  double leeway;               /* the factor of the tolerance */
};

/* The unit roundoff u of kernel and reference together. */
static double unit_of(const wlm_problem *problem) {
  const wlm_type accumulator = wlmi_accumulator_type(problem->dense_type);
  return wlmi_element_unit(accumulator) * (accumulator == WLM_F64 ? 2 : 1);
}

double wlmi_tolerance(const wlm_problem *problem, int64_t edges) {
  const double d = (double)edges;
  const int is_half = wlmi_accumulator_type(problem->dense_type) != problem->dense_type;
  const double rounded = is_half ? wlmi_element_unit(problem->dense_type) : 0;
  const int equal_terms = problem->message == WLM_COPY_A || problem->sampling.sample == WLM_SAMPLE_FASTRAND;
  const double roundings = problem->reduce == WLM_PROD ? 2 * d : d;
  return rounded + unit_of(problem) * (8 + (equal_terms ? d : 2 * sqrt(roundings)));
}

static int compare(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

static int64_t degree(const wlmi_csr_host *a, int64_t row) { return a->rowptr[row + 1] - a->rowptr[row]; }

static int is_sddmm(const wlmi_verifier *verifier) { return verifier->operands->spec.problem.operation == WLM_SDDMM; }

/* The number of terms that an element of this row of the result is the sum of. */
static int64_t terms(const wlmi_verifier *verifier, int64_t row) {
  const wlm_problem *p = &verifier->operands->spec.problem;
  if (is_sddmm(verifier)) return p->n / p->heads;
  return wlmi_edges_of_row(&verifier->operands->a, p, row);
}

/* The operands and results that a product of the problem reads or writes. */
static double arrays_of(const wlmi_operands *operands) {
  return operands->message ? operands->message->message.operands + operands->message->message.results : 1;
}

static wlm_status choose_rows(wlmi_verifier *verifier, uint64_t seed) {
  const wlmi_csr_host *a = &verifier->operands->a;
  double n = (double)verifier->operands->spec.problem.n;
  const int64_t total = verifier->operands->result_rows, columns = verifier->operands->result_columns;
  const int64_t some = (is_sddmm(verifier) ? RANDOM_EDGES : RANDOM_ROWS) + NAMED_ROWS;
  int all = (double)a->nnz * n * arrays_of(verifier->operands) <= max_products &&
            (double)total * (double)columns * arrays_of(verifier->operands) <= max_elements;
  int64_t wanted = all || total <= some ? total : some;
  wlm_status status = wlmi_alloc_array(wanted, sizeof *verifier->rows, "rows to check", (void **)&verifier->rows);
  if (status != WLM_OK) return status;
  verifier->count = wanted;
  if (wanted == total) {
    for (int64_t row = 0; row < total; row++) verifier->rows[row] = row;
    return WLM_OK;
  }
  int64_t longest = 0, empty = 0;
  for (int64_t row = 0; row < a->rows; row++) {
    if (degree(a, row) > degree(a, longest)) longest = row;
    if (!degree(a, row)) empty = row;
  }
  int64_t named[NAMED_ROWS] = {0, total - 1, longest, empty};
  /* The first edge of the longest row. */
  if (is_sddmm(verifier)) named[2] = named[3] = a->rowptr[longest] * verifier->operands->spec.problem.heads;
  for (int64_t i = 0; i < wanted; i++)
    verifier->rows[i] = i < NAMED_ROWS ? named[i] : (int64_t)(wlmi_sample_hash(seed, i) % (uint64_t)total);
  qsort(verifier->rows, (size_t)wanted, sizeof *verifier->rows, compare);
  verifier->count = 0;
  for (int64_t i = 0; i < wanted; i++)
    if (!i || verifier->rows[i] != verifier->rows[i - 1]) verifier->rows[verifier->count++] = verifier->rows[i];
  return WLM_OK;
}

static size_t element_size(const wlmi_verifier *verifier) {
  return wlmi_type_size(verifier->operands->spec.problem.dense_type);
}

static const char *result_memory(const wlmi_verifier *verifier) {
  return (const char *)verifier->operands->c.memory + (size_t)verifier->operands->shift * element_size(verifier);
}

static size_t arg_size(const wlmi_verifier *verifier) {
  return wlmi_index_size(verifier->operands->spec.problem.argmax_type);
}

static int64_t rows_of_piece(int64_t ld) { return ld < PIECE ? PIECE / (ld ? ld : 1) : 1; }

static wlm_status allocate_tolerances(wlmi_verifier *verifier) {
  return wlmi_alloc_array(verifier->count, sizeof *verifier->tolerances, "tolerances", (void **)&verifier->tolerances);
}

static wlm_status allocate(wlmi_verifier *verifier) {
  const int64_t elements = verifier->count * verifier->operands->result_columns; /* bounded above */
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(elements, sizeof *verifier->reference, "reference", (void **)&verifier->reference));
  WLM_TRY(wlmi_alloc_array(elements, sizeof *verifier->scale, "scale of the reference", (void **)&verifier->scale));
  WLM_TRY(wlmi_alloc_array(elements, element_size(verifier), "result", (void **)&verifier->result));
  WLM_TRY(wlmi_alloc_array(verifier->count, sizeof *verifier->errors, "errors", (void **)&verifier->errors));
  if (!verifier->operands->spec.problem.want_argmax) goto done;
  WLM_TRY(wlmi_alloc_array(elements, sizeof *verifier->positions, "positions", (void **)&verifier->positions));
  WLM_TRY(wlmi_alloc_array(elements, arg_size(verifier), "positions", (void **)&verifier->arg));
done:
  return status;
}

static wlm_status make_message_check(wlmi_verifier *v, double most_edge_numbers) {
  return wlmi_message_check_create(v->operands, v->rows, v->count, v->tolerances, wlmi_tolerance,
                                   (int64_t)most_edge_numbers, &v->message);
}

/* Spots are evenly spaced among the compared rows, with the first and the last; one more is the longest. */
static int64_t spot_at(const wlmi_verifier *verifier, int64_t longest, int64_t k) {
  return k < SPOTS ? k * (verifier->count - 1) / (SPOTS - 1) : longest;
}

static wlm_status copy_references(const wlmi_verifier *from, int64_t longest, wlmi_verifier *spots) {
  const size_t n = (size_t)from->operands->result_columns;
  const wlm_status status = allocate(spots);
  for (int64_t k = 0; k <= SPOTS && status == WLM_OK; k++) {
    const size_t to = (size_t)k * n, at = (size_t)spot_at(from, longest, k) * n;
    memcpy(spots->reference + to, from->reference + at, n * sizeof *spots->reference);
    memcpy(spots->scale + to, from->scale + at, n * sizeof *spots->scale);
    if (spots->positions) memcpy(spots->positions + to, from->positions + at, n * sizeof *spots->positions);
  }
  return status;
}

static wlm_status make_spots(wlmi_verifier *verifier) {
  int64_t longest = 0;
  wlm_status status;
  if (verifier->count <= 2 * SPOTS) return WLM_OK;
  wlmi_verifier *spots = verifier->spots = wlmi_alloc_zero(1, sizeof *spots);
  if (!spots) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a verifier");
  spots->operands = verifier->operands;
  spots->leeway = 1;
  spots->count = SPOTS + 1;
  WLM_TRY(wlmi_alloc_array(spots->count, sizeof *spots->rows, "rows to check", (void **)&spots->rows));
  WLM_TRY(allocate_tolerances(spots));
  for (int64_t i = 1; i < verifier->count; i++)
    if (terms(verifier, verifier->rows[i]) > terms(verifier, verifier->rows[longest])) longest = i;
  for (int64_t k = 0; k <= SPOTS; k++) {
    const int64_t from = spot_at(verifier, longest, k);
    spots->rows[k] = verifier->rows[from];
    spots->tolerances[k] = verifier->tolerances[from];
  }
  status = verifier->message ? make_message_check(spots, spot_numbers) : copy_references(verifier, longest, spots);
done:
  return status;
}

static int compare_columns(const void *left, const void *right) {
  const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
  return (a > b) - (a < b);
}

/* The edges of the row whose column an earlier edge of the row has. */
static int64_t repeats(const wlmi_csr_host *a, int64_t row, int32_t *columns) {
  const int64_t d = degree(a, row);
  int ascending = 1;
  int64_t count = 0;
  memcpy(columns, a->colind + a->rowptr[row], (size_t)d * sizeof *columns);
  for (int64_t i = 1; i < d && ascending; i++) ascending = columns[i - 1] <= columns[i];
  if (!ascending) qsort(columns, (size_t)d, sizeof *columns, compare_columns);
  for (int64_t i = 1; i < d; i++) count += columns[i - 1] == columns[i];
  return count;
}

/* Of the rows that are named, or of the first ones. */
static wlm_status find_tolerances(const wlmi_verifier *v, const int64_t *rows, int64_t count, double *tolerances) {
  const wlmi_csr_host *a = &v->operands->a;
  const wlm_problem *p = &v->operands->spec.problem;
  int64_t longest = 0;
  int32_t *columns = NULL;
  wlm_status status = WLM_OK;
  for (int64_t i = 0; i < count && !is_sddmm(v); i++)
    if (degree(a, rows ? rows[i] : i) > longest) longest = degree(a, rows ? rows[i] : i);
  WLM_TRY(wlmi_alloc_array(longest, sizeof *columns, "columns of a row", (void **)&columns));
  for (int64_t i = 0; i < count; i++) {
    const int64_t row = rows ? rows[i] : i;
    tolerances[i] = wlmi_tolerance(p, terms(v, row));
    if (longest && !is_sddmm(v)) tolerances[i] += unit_of(p) * (double)repeats(a, row, columns);
  }
done:
  wlmi_free(columns);
  return status;
}

static double typical_scale(const wlmi_verifier *v) {
  const int64_t count = v->count * v->operands->result_columns;
  double sum = 0;
  int64_t used = 0;
  for (int64_t i = 0; i < count; i++)
    if (isfinite(v->scale[i])) sum += v->scale[i], used++;
  return used ? sum / (double)used : 0;
}

static wlm_status make_row_check(wlmi_verifier *v) {
  const wlmi_operands *o = v->operands;
  const int is_cuda = o->device->info.limits.target == WLM_TARGET_CUDA;
  double *tolerances = NULL;
  wlm_status status = WLM_OK;
  if (is_sddmm(v)) return status;
  WLM_TRY(wlmi_alloc_array(o->result_rows, sizeof *tolerances, "tolerances", (void **)&tolerances));
  WLM_TRY(find_tolerances(v, NULL, o->result_rows, tolerances));
  status = wlmi_row_check_create(o, is_cuda ? "row_naive" : NULL, tolerances, typical_scale(v), &v->all_rows);
done:
  wlmi_free(tolerances);
  return status;
}

static wlm_status make_reference(const wlmi_verifier *v) {
  const wlmi_operands *o = v->operands;
  wlm_problem problem = o->spec.problem;
  wlm_execute_args call = o->call;
  call.bias = o->bias_host;
  problem.transpose = 0; /* a is op(A) */
  if (wlmi_is_attention(&problem))
    return wlmi_attention_operands_reference(o, v->rows, v->count, v->reference, v->scale);
  if (is_sddmm(v))
    return wlmi_reference_edges(&o->a, &problem, &call, o->x_host, o->b_host, o->c_old, v->rows, v->count, v->reference,
                                v->scale);
  return wlmi_reference_rows(&o->a, &problem, &call, o->b_host, o->c_old, v->rows, v->count, v->reference, v->scale);
}

/* With transpose they are positions in A itself. */
static wlm_status make_positions(const wlmi_verifier *v) {
  const wlmi_operands *o = v->operands;
  if (!v->positions) return WLM_OK;
  wlm_status status =
      wlmi_reference_positions(&o->a, &o->spec.problem, &o->call, o->b_host, v->rows, v->count, v->positions);
  for (int64_t i = 0; o->order && i < v->count * o->result_columns; i++)
    if (v->positions[i] >= 0) v->positions[i] = o->order[v->positions[i]];
  return status;
}

/* Of operations with one result. */
static wlm_status make_references(wlmi_verifier *verifier, uint64_t seed) {
  const wlmi_operands *operands = verifier->operands;
  wlm_status status;
  WLM_TRY(allocate(verifier));
  WLM_TRY(make_reference(verifier));
  WLM_TRY(make_positions(verifier));
  if (verifier->count < operands->result_rows)
    WLM_TRY(wlmi_column_check_create(operands, seed, wlmi_tolerance, &verifier->columns));
  if (verifier->count < operands->result_rows && !verifier->columns) WLM_TRY(make_row_check(verifier));
  if (verifier->columns || verifier->all_rows)
    WLM_TRY(wlmi_alloc_array(rows_of_piece(operands->result_ld) * operands->result_ld, element_size(verifier), "C",
                             (void **)&verifier->piece));
done:
  return status;
}

wlm_status wlmi_verifier_create(wlmi_operands *operands, uint64_t seed, wlmi_verifier **out) {
  wlm_status status;
  *out = NULL;
  wlmi_verifier *verifier = wlmi_alloc_zero(1, sizeof *verifier);
  if (!verifier) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a verifier");
  verifier->operands = operands;
  verifier->leeway = 1;
  WLM_TRY(choose_rows(verifier, seed));
  WLM_TRY(allocate_tolerances(verifier));
  WLM_TRY(find_tolerances(verifier, verifier->rows, verifier->count, verifier->tolerances));
  WLM_TRY(operands->message
              ? make_message_check(verifier, verifier->count < operands->result_rows ? max_elements : max_products)
              : make_references(verifier, seed));
  WLM_TRY(make_spots(verifier));
  *out = verifier;
  verifier = NULL;
done:
  wlmi_verifier_destroy(verifier);
  return status;
}

void wlmi_verifier_destroy(wlmi_verifier *verifier) {
  if (!verifier) return;
  wlmi_verifier_destroy(verifier->spots);
  wlmi_free(verifier->rows);
  wlmi_free(verifier->reference);
  wlmi_free(verifier->scale);
  wlmi_free(verifier->result);
  wlmi_free(verifier->errors);
  wlmi_free(verifier->tolerances);
  wlmi_free(verifier->positions);
  wlmi_free(verifier->arg);
  wlmi_free(verifier->piece);
  wlmi_column_check_destroy(verifier->columns);
  wlmi_row_check_destroy(verifier->all_rows);
  wlmi_message_check_destroy(verifier->message);
  wlmi_free(verifier);
}

void wlmi_verifier_set_leeway(wlmi_verifier *verifier, double leeway) {
  verifier->leeway = leeway;
  if (verifier->spots) verifier->spots->leeway = leeway;
}

int64_t wlmi_verifier_rows(const wlmi_verifier *verifier) { return verifier->count; }

/* Copies the rows to compare from memory with the layout of C. Adjacent rows without padding are copied in one piece.
 */
static wlm_status copy_rows(const wlmi_verifier *verifier, const char *c, int64_t size, char *to) {
  const wlmi_operands *operands = verifier->operands;
  const int64_t n = operands->result_columns, ld = operands->result_ld;
  for (int64_t i = 0, run; i < verifier->count && n; i += run) {
    run = 1;
    while (ld == n && i + run < verifier->count && verifier->rows[i + run] == verifier->rows[i] + run) run++;
    wlm_status status = operands->device->ops->copy_out(operands->device, to + i * n * size,
                                                        c + verifier->rows[i] * ld * size, (size_t)(run * n * size));
    if (status != WLM_OK) return status;
  }
  return WLM_OK;
}

/* Reads all of C for the check of all rows, and keeps the rows to compare. */
static wlm_status read_all(const wlmi_verifier *verifier) {
  const wlmi_operands *operands = verifier->operands;
  const wlm_problem *p = &operands->spec.problem;
  const char *c = result_memory(verifier);
  const int64_t size = (int64_t)element_size(verifier);
  const int64_t ldc = operands->call.ldc, step = rows_of_piece(ldc);
  if (verifier->columns) wlmi_column_check_begin(verifier->columns);
  if (verifier->all_rows) wlmi_row_check_begin(verifier->all_rows);
  for (int64_t first = 0, i = 0; first < operands->a.rows && p->n; first += step) {
    const int64_t rows = first + step < operands->a.rows ? step : operands->a.rows - first;
    wlm_status status = operands->device->ops->copy_out(operands->device, verifier->piece, c + first * ldc * size,
                                                        (size_t)(((rows - 1) * ldc + p->n) * size));
    if (status != WLM_OK) return status;
    if (verifier->columns) wlmi_column_check_add(verifier->columns, first, rows, verifier->piece, ldc);
    if (verifier->all_rows)
      status = wlmi_row_check_add(verifier->all_rows, first, rows, verifier->piece, ldc, verifier->leeway);
    if (status != WLM_OK) return status;
    for (; i < verifier->count && verifier->rows[i] < first + rows; i++)
      memcpy(verifier->result + i * p->n * size, verifier->piece + (verifier->rows[i] - first) * ldc * size,
             (size_t)(p->n * size));
  }
  return WLM_OK;
}

static void find_errors(const wlmi_verifier *verifier) {
  const wlm_problem *p = &verifier->operands->spec.problem;
  const int64_t n = verifier->operands->result_columns, row = n * (int64_t)element_size(verifier);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < verifier->count; i++)
    verifier->errors[i] = wlmi_reference_error(p->dense_type, verifier->result + i * row, n, NULL, 1, n,
                                               verifier->reference + i * n, verifier->scale + i * n);
}

static wlm_status compare_rows(const wlmi_verifier *verifier, double *max_rel_err) {
  double worst = 0, worst_error = 0;
  int64_t worst_row = -1, wrong = 0;
  *max_rel_err = 0;
  for (int64_t i = 0; i < verifier->count; i++) {
    double error = verifier->errors[i];
    double excess = error / verifier->tolerances[i];
    if (error > *max_rel_err) *max_rel_err = error;
    wrong += excess > verifier->leeway;
    if (excess > worst) {
      worst = excess;
      worst_error = error;
      worst_row = verifier->rows[i];
    }
  }
  if (!wrong) return WLM_OK;
  const char *const line = is_sddmm(verifier) ? "edge" : "row";
  return wlmi_fail(WLM_ERR_MISMATCH,
                   "%s %lld differs from float64 by %.3g of sum |a b|, %.3g times the tolerance; "
                   "%lld of %lld %ss are wrong",
                   line, (long long)worst_row, worst_error, worst, (long long)wrong, (long long)verifier->count, line);
}

static int64_t position(const wlmi_verifier *verifier, int64_t i) {
  return arg_size(verifier) == sizeof(int64_t) ? ((const int64_t *)verifier->arg)[i]
                                               : ((const int32_t *)verifier->arg)[i];
}

static wlm_status compare_positions(const wlmi_verifier *verifier) {
  const int64_t n = verifier->operands->result_columns;
  int64_t wrong = 0, first = 0;
  if (!verifier->positions) return WLM_OK;
  wlm_status status = copy_rows(verifier, verifier->operands->arg.memory, (int64_t)arg_size(verifier), verifier->arg);
  if (status != WLM_OK) return status;
  for (int64_t i = verifier->count * n - 1; i >= 0; i--)
    if (position(verifier, i) != verifier->positions[i]) wrong++, first = i;
  if (!wrong) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "arg[%lld,%lld] is %lld instead of %lld; %lld of %lld positions are wrong",
                   (long long)verifier->rows[first / n], (long long)(first % n), (long long)position(verifier, first),
                   (long long)verifier->positions[first], (long long)wrong, (long long)(verifier->count * n));
}

wlm_status wlmi_verify_result(wlmi_verifier *verifier, double *max_rel_err) {
  wlm_status status;
  if (verifier->message) return wlmi_message_check_result(verifier->message, verifier->leeway, max_rel_err);
  WLM_TRY(verifier->columns || verifier->all_rows
              ? read_all(verifier)
              : copy_rows(verifier, result_memory(verifier), (int64_t)element_size(verifier), verifier->result));
  find_errors(verifier);
  WLM_TRY(compare_rows(verifier, max_rel_err));
  WLM_TRY(compare_positions(verifier));
  if (verifier->columns) status = wlmi_column_check_finish(verifier->columns, verifier->leeway);
  if (verifier->all_rows) status = wlmi_row_check_finish(verifier->all_rows);
done:
  return status;
}

wlm_status wlmi_verify_spots(wlmi_verifier *verifier, double *max_rel_err) {
  return wlmi_verify_result(verifier->spots ? verifier->spots : verifier, max_rel_err);
}
