/* Binding a matrix: the caller's arrays stay where they are; stats are measured on its stream, estimated from its size
 * or taken from the caller. */
#include <math.h>

#include "core/base/memory.h"
#include "core/base/pointer.h"
#include "core/csr/stats.h"
#include "core/problem/cell.h"
#include "core/problem/size.h"
#include "core/problem/structs.h"
#include "runtime/context_state.h"

static wlm_status check_size(const wlm_csr *csr) {
  WLM_CHECK(wlmi_check_types(csr));
  if (csr->rows < 0 || csr->cols < 0 || csr->nnz < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_csr: rows = %lld, cols = %lld, nnz = %lld; none may be negative",
                     (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz);
  if (!wlmi_is_size(csr->rows) || !wlmi_is_size(csr->cols) || !wlmi_is_size(csr->nnz))
    return wlmi_fail(WLM_ERR_OVERFLOW,
                     "wlm_csr: rows = %lld, cols = %lld, nnz = %lld; none may be above " WLMI_MOST_SIZE_TEXT,
                     (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz);
  if (csr->nnz && (!csr->rows || !csr->cols))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_csr: nnz is %lld, and the matrix has no %s; nnz must be 0",
                     (long long)csr->nnz, csr->rows ? "columns" : "rows");
  if (csr->rowptr_type == WLM_I32 && csr->nnz > INT32_MAX - csr->base)
    return wlmi_fail(WLM_ERR_OVERFLOW, "wlm_csr: %lld non-zeros do not fit a rowptr of i32; use i64",
                     (long long)csr->nnz);
  if (csr->colind_type == WLM_I32 && csr->cols > (int64_t)INT32_MAX + 1 - csr->base)
    return wlmi_fail(WLM_ERR_OVERFLOW, "wlm_csr: %lld columns do not fit a colind of i32", (long long)csr->cols);
  return WLM_OK;
}

wlm_status wlmi_matrix_check(const wlm_csr *csr) {
  WLM_CHECK(check_size(csr));
  const size_t offset = wlmi_index_size(csr->rowptr_type), index = wlmi_index_size(csr->colind_type);
  const int has_transpose = csr->t_rowptr || csr->t_colind || csr->t_order, of_edges = has_transpose && csr->nnz;
  const wlmi_pointer arrays[] = {{"rowptr", csr->rowptr, offset, 1},
                                 {"colind", csr->colind, index, csr->nnz != 0},
                                 {"values", csr->values, wlmi_type_size(csr->value_type), 0},
                                 {"t_rowptr", csr->t_rowptr, offset, has_transpose},
                                 {"t_colind", csr->t_colind, index, of_edges},
                                 {"t_order", csr->t_order, offset, of_edges}};
  return wlmi_check_pointers("wlm_csr", arrays, 6);
}

/* Why the fields of given stats contradict each other, as a message; NULL = they do not. A mean may be rounded to
 * float. */
static const char *broken_rule(const wlm_stats *s) {
  const double mean = s->rows ? (double)s->nnz / (double)s->rows : 0;
  if (s->longest < 0 || s->empty_rows < 0) return "longest and empty_rows must not be negative";
  if (wlmi_stats_fault(s)) return wlmi_stats_fault(s);
  if ((double)s->longest < (1 - 1e-6) * mean) return "longest must not be less than nnz / rows";
  if (fabs(s->mean - mean) > 1e-3 * mean) return "mean must be nnz / rows";
  if (s->cv < 0) return "cv must not be negative";
  return s->top_share < 0 || s->top_share > 1 ? "top_share must be 0 to 1" : NULL;
}

static wlm_status take_stats(const wlm_csr *csr, const wlm_stats *given, wlm_stats *stats) {
  WLM_CHECK(wlmi_struct_read(&wlmi_struct_stats, given, stats));
  if (stats->rows != csr->rows || stats->cols != csr->cols || stats->nnz != csr->nnz)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_matrix_options.stats are of a matrix of another size");
  const struct {
    const char *name;
    double value;
  } fields[] = {{"mean", stats->mean}, {"cv", stats->cv}, {"top_share", stats->top_share}};
  for (int i = 0; i < 3; i++)
    if (!isfinite(fields[i].value))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_matrix_options.stats: wlm_stats.%s is %g, must be finite",
                       fields[i].name, fields[i].value);
  const char *rule = broken_rule(stats);
  return rule ? wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_matrix_options.stats: %s", rule) : WLM_OK;
}

static wlm_status make_stats(wlm_context *context, wlm_matrix *matrix, const wlm_matrix_options *options) {
  const wlm_csr *csr = &matrix->csr;
  switch (options->grade) {
    case WLM_STATS_MEASURED: return wlmi_matrix_make_stats(context, csr, matrix->stream, &matrix->stats);
    case WLM_STATS_ESTIMATED: wlmi_stats_estimate(csr->rows, csr->cols, csr->nnz, &matrix->stats); return WLM_OK;
    case WLM_STATS_GIVEN: return take_stats(&matrix->csr, options->stats, &matrix->stats);
  }
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_matrix_options.grade is %d, which is not in its enum",
                   (int)options->grade);
}

static void matrix_in_child(void *object) {
  wlm_matrix *matrix = object;
  matrix->half_changed |= wlmi_fork_free_lock(&matrix->lock);
}

wlm_status wlm_matrix_create(wlm_context *context, const wlm_csr *csr, const wlm_matrix_options *given,
                             wlm_matrix **out) {
  wlm_matrix_options options = WLM_MATRIX_OPTIONS_INIT;
  wlm_matrix *matrix = NULL;
  wlm_status status;
  if (out) *out = NULL;
  WLM_TRY(wlmi_need("wlm_matrix_create", "context csr matrix", context, csr, out));
  if (given) WLM_TRY(wlmi_struct_read(&wlmi_struct_matrix_options, given, &options));
  matrix = wlmi_alloc_zero(1, sizeof *matrix);
  if (!matrix) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "matrix");
  matrix->context = context;
  matrix->stream = options.stream;
  matrix->grade = options.grade;
  WLM_TRY(wlmi_struct_read(&wlmi_struct_csr, csr, &matrix->csr));
  const int is_size = options.grade == WLM_STATS_ESTIMATED && !matrix->csr.rowptr && !matrix->csr.colind;
  WLM_TRY(is_size ? check_size(&matrix->csr) : wlmi_matrix_check(&matrix->csr));
  WLM_TRY(make_stats(context, matrix, &options));
  pthread_mutex_init(&matrix->lock, NULL);
  WLM_TRY(wlmi_fork_watch_begin(&matrix->forks, matrix_in_child, matrix));
  *out = matrix;
done:
  if (status != WLM_OK) wlmi_free(matrix);
  return wlmi_finish(status);
}

void wlm_matrix_destroy(wlm_matrix *matrix) {
  if (!matrix) return;
  wlmi_fork_watch_end(&matrix->forks);
  wlmi_transpose_destroy(matrix->transpose);
  pthread_mutex_destroy(&matrix->lock);
  wlmi_free(matrix);
}

wlm_status wlmi_matrix_of(const wlm_matrix *matrix, const wlm_context *context, const char *call) {
  if (matrix->half_changed)
    return wlmi_fail(WLM_ERR_UNSUPPORTED,
                     "%s: this process was forked while another thread used the matrix; create it again in the child",
                     call);
  if (matrix->context == context) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                   "%s: the matrix was created in another context; create one in this context", call);
}

wlm_status wlmi_matrix_with_arrays(const wlm_matrix *matrix, const wlm_context *context, const char *call) {
  WLM_CHECK(wlmi_matrix_of(matrix, context, call));
  if (matrix->csr.rowptr) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: the matrix is only a size; create it with rowptr and colind", call);
}

/* The matrix is const for callers, because adding the fingerprint changes nothing that they can see. */
wlm_status wlmi_matrix_fingerprint(const wlm_matrix *known) {
  wlm_matrix *matrix = (wlm_matrix *)(uintptr_t)known;
  wlm_status status = WLM_OK;
  pthread_mutex_lock(&matrix->lock);
  if (!wlmi_stats_has_fingerprint(&matrix->stats)) {
    wlm_context *context = matrix->context;
    wlm_stats full = matrix->stats;
    if (matrix->grade != WLM_STATS_MEASURED)
      status = wlmi_matrix_make_stats(context, &matrix->csr, matrix->stream, &full);
    if (status == WLM_OK) status = wlmi_matrix_add_fingerprint(context, &matrix->csr, matrix->stream, &full);
    if (status == WLM_OK) {
      matrix->stats = full;
      matrix->grade = WLM_STATS_MEASURED;
    }
  }
  pthread_mutex_unlock(&matrix->lock);
  return status;
}

static wlm_status see_transpose(wlm_matrix *matrix, wlmi_matrix_view *view) {
  wlm_status status = WLM_OK;
  pthread_mutex_lock(&matrix->lock);
  if (!matrix->transpose) status = wlmi_transpose_create(matrix->context, matrix->stream, &matrix->transpose);
  pthread_mutex_unlock(&matrix->lock);
  return status == WLM_OK ? wlmi_transpose_get(matrix->transpose, &matrix->csr, view) : status;
}

wlm_stats_grade wlmi_matrix_read_stats(const wlm_matrix *known, const wlm_stats *from, wlm_stats *to) {
  wlm_matrix *matrix = (wlm_matrix *)(uintptr_t)known;
  pthread_mutex_lock(&matrix->lock);
  const wlm_stats_grade grade = matrix->grade;
  *to = *from;
  pthread_mutex_unlock(&matrix->lock);
  return grade;
}

int wlmi_matrix_has_transpose(const wlm_matrix *known) {
  wlm_matrix *matrix = (wlm_matrix *)(uintptr_t)known;
  pthread_mutex_lock(&matrix->lock);
  const int has = matrix->transpose != NULL;
  pthread_mutex_unlock(&matrix->lock);
  return has;
}

wlm_status wlmi_matrix_see(const wlm_matrix *matrix, const wlm_problem *problem, wlmi_matrix_view *view) {
  if (wlmi_needs_transpose(problem)) return see_transpose((wlm_matrix *)(uintptr_t)matrix, view);
  *view = (wlmi_matrix_view){.csr = matrix->csr, .stats = &matrix->stats};
  return WLM_OK;
}

const wlm_stats *wlm_matrix_stats(const wlm_matrix *matrix) { return matrix ? &matrix->stats : NULL; }
