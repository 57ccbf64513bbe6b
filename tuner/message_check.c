/* The lines to compare are those of the rows and, for edge results, of their edges. On A^T the edges of a row lie far
 * apart in the order of A. So lines are sorted by their place in memory and copied in runs, which may include lines
 * between them. */
#include "tuner/message_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/reference/reference.h"
#include "tuner/message_operands.h"

enum {
  PIECE_BYTES = 1 << 24,
  NEAR_BYTES = 1 << 16
}; /* of a run; between its lines, as copying these takes no longer */

/* A line of a result in memory, and its place in the reference. */
typedef struct line {
  int64_t in_memory, at;
} line;

typedef struct lines {
  line *list;
  int64_t count;
} lines;

struct wlmi_message_check {
  const wlmi_operands *operands;
  wlmi_message_walk walk;
  int64_t *rows;
  double *tolerances;
  double tolerance_of_edge, tolerance_of_edge_sum;
  int64_t *edge_first; /* of each row: the line of its first edge in the reference */
  lines of_rows, of_edges;
  wlmi_message_reference reference[WLM_MAX_RESULTS];
  char *piece, *found; /* a run as it lies in memory; the lines to compare, in the order of the reference */
  double *errors;      /* of each line */
};

static int is_of_row(const wlmi_message_check *check, int r) {
  return wlmi_result_is_of_row(check->walk.message->result[r].kind);
}

static const lines *lines_of(const wlmi_message_check *check, int r) {
  return is_of_row(check, r) ? &check->of_rows : &check->of_edges;
}

static const wlmi_message_array *array_of(const wlmi_message_check *check, int r) {
  return &check->operands->message->result[r];
}

/* ---- the lines to compare ------------------------------------------------------------------------------- */

/* How many numbers the edge results have for an edge. */
static int64_t numbers_of_edge(const wlmi_message_check *check) {
  int64_t numbers = 0;
  for (int r = 0; r < check->walk.message->results; r++)
    if (!is_of_row(check, r)) numbers += array_of(check, r)->width;
  return numbers;
}

static void choose_edges(wlmi_message_check *check, int64_t most_numbers) {
  const int64_t *rowptr = check->operands->a.rowptr, each = numbers_of_edge(check);
  check->edge_first[0] = 0;
  for (int64_t i = 0; i < check->of_rows.count; i++) {
    const int64_t first = check->edge_first[i], edges = rowptr[check->rows[i] + 1] - rowptr[check->rows[i]];
    check->edge_first[i + 1] = first + (each && edges <= most_numbers / each - first ? edges : 0);
  }
  check->of_edges.count = check->edge_first[check->of_rows.count];
}

static int compare_lines(const void *left, const void *right) {
  const line *a = left, *b = right;
  return (a->in_memory > b->in_memory) - (a->in_memory < b->in_memory);
}

static void sort_lines(lines *of) {
  int ascending = 1;
  for (int64_t i = 1; i < of->count && ascending; i++) ascending = of->list[i - 1].in_memory <= of->list[i].in_memory;
  if (!ascending) qsort(of->list, (size_t)of->count, sizeof *of->list, compare_lines);
}

static void find_lines(wlmi_message_check *check) {
  const wlmi_operands *o = check->operands;
  for (int64_t i = 0; i < check->of_rows.count; i++) {
    const int64_t begin = o->a.rowptr[check->rows[i]], first = check->edge_first[i];
    check->of_rows.list[i] = (line){check->rows[i], i};
    for (int64_t at = first; at < check->edge_first[i + 1]; at++) {
      const int64_t edge = begin + at - first;
      check->of_edges.list[at] = (line){o->order ? o->order[edge] : edge, at};
    }
  }
  sort_lines(&check->of_rows);
  sort_lines(&check->of_edges);
}

/* ---- the reference -------------------------------------------------------------------------------------- */

/* Of the largest array. */
static wlm_status make_room(wlmi_message_check *check) {
  size_t found = 0, piece = PIECE_BYTES;
  int64_t most_lines = 0;
  wlm_status status;
  for (int r = 0; r < check->walk.message->results; r++) {
    const wlmi_message_array *array = array_of(check, r), *positions = &check->operands->message->positions[r];
    const int64_t count = lines_of(check, r)->count;
    const size_t size = array->size > positions->size ? array->size : positions->size;
    const size_t numbers = (size_t)(count * array->width), row = (size_t)array->ld * size;
    wlmi_message_reference *to = &check->reference[r];
    WLM_TRY(wlmi_alloc_array((int64_t)numbers, sizeof *to->value, "reference", (void **)&to->value));
    WLM_TRY(wlmi_alloc_array((int64_t)numbers, sizeof *to->scale, "scale of the reference", (void **)&to->scale));
    if (positions->size)
      WLM_TRY(wlmi_alloc_array((int64_t)numbers, sizeof *to->positions, "positions", (void **)&to->positions));
    found = numbers * size > found ? numbers * size : found;
    piece = row > piece ? row : piece;
    most_lines = count > most_lines ? count : most_lines;
  }
  WLM_TRY(wlmi_alloc_array((int64_t)found, 1, "results", (void **)&check->found));
  WLM_TRY(wlmi_alloc_array((int64_t)piece, 1, "a piece of a result", (void **)&check->piece));
  status = wlmi_alloc_array(most_lines, sizeof *check->errors, "errors", (void **)&check->errors);
done:
  return status;
}

wlm_status wlmi_message_check_create(const wlmi_operands *operands, const int64_t *rows, int64_t count,
                                     const double *tolerances,
                                     double (*tolerance)(const wlm_problem *problem, int64_t terms),
                                     int64_t most_edge_numbers, wlmi_message_check **out) {
  const wlm_problem *p = &operands->spec.problem;
  wlm_status status;
  *out = NULL;
  wlmi_message_check *check = wlmi_alloc_zero(1, sizeof *check);
  if (!check) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a check of messages");
  check->operands = operands;
  check->walk = wlmi_message_operands_walk(operands);
  check->tolerance_of_edge = tolerance(p, 1);
  check->tolerance_of_edge_sum = tolerance(p, p->n / p->heads);
  check->of_rows.count = count;
  WLM_TRY(wlmi_alloc_array(count, sizeof *rows, "rows to check", (void **)&check->rows));
  WLM_TRY(wlmi_alloc_array(count, sizeof *tolerances, "tolerances", (void **)&check->tolerances));
  WLM_TRY(wlmi_alloc_array(count + 1, sizeof *rows, "edges to check", (void **)&check->edge_first));
  memcpy(check->rows, rows, (size_t)count * sizeof *rows);
  memcpy(check->tolerances, tolerances, (size_t)count * sizeof *tolerances);
  choose_edges(check, most_edge_numbers);
  WLM_TRY(wlmi_alloc_array(count, sizeof(line), "rows to check", (void **)&check->of_rows.list));
  WLM_TRY(wlmi_alloc_array(check->of_edges.count, sizeof(line), "edges to check", (void **)&check->of_edges.list));
  find_lines(check);
  WLM_TRY(make_room(check));
  WLM_TRY(wlmi_reference_message(&check->walk, check->rows, count, check->edge_first, check->reference));
  *out = check;
  check = NULL;
done:
  wlmi_message_check_destroy(check);
  return status;
}

void wlmi_message_check_destroy(wlmi_message_check *check) {
  if (!check) return;
  for (int r = 0; r < WLM_MAX_RESULTS; r++) {
    wlmi_free(check->reference[r].value);
    wlmi_free(check->reference[r].scale);
    wlmi_free(check->reference[r].positions);
  }
  wlmi_free(check->rows);
  wlmi_free(check->tolerances);
  wlmi_free(check->edge_first);
  wlmi_free(check->of_rows.list);
  wlmi_free(check->of_edges.list);
  wlmi_free(check->piece);
  wlmi_free(check->found);
  wlmi_free(check->errors);
  wlmi_free(check);
}

/* ---- one call ------------------------------------------------------------------------------------------- */

/* Copies the lines of an array to `found`. */
static wlm_status copy_lines(const wlmi_message_check *check, const wlmi_message_array *array, const lines *of) {
  wlmi_device *device = check->operands->device;
  const char *memory = wlmi_message_array_memory(check->operands, array);
  const int64_t row = array->ld * (int64_t)array->size, used = array->width * (int64_t)array->size;
  for (int64_t i = 0, run; i < of->count && used; i += run) {
    const line *first = &of->list[i];
    run = 1;
    while (i + run < of->count && (first[run].in_memory - first[run - 1].in_memory) * row <= NEAR_BYTES + row &&
           (first[run].in_memory - first->in_memory + 1) * row <= PIECE_BYTES)
      run++;
    const int64_t bytes = (first[run - 1].in_memory - first->in_memory) * row + used;
    const wlm_status status =
        device->ops->copy_out(device, check->piece, memory + first->in_memory * row, (size_t)bytes);
    if (status != WLM_OK) return status;
    for (int64_t k = 0; k < run; k++)
      memcpy(check->found + first[k].at * used, check->piece + (first[k].in_memory - first->in_memory) * row,
             (size_t)used);
  }
  return WLM_OK;
}

static double tolerance_of(const wlmi_message_check *check, int r, int64_t at) {
  switch (check->walk.message->result[r].kind) {
    case WLM_RESULT_EDGE: return check->tolerance_of_edge;
    case WLM_RESULT_EDGE_SUM: return check->tolerance_of_edge_sum;
    default: return check->tolerances[at];
  }
}

static wlm_status compare_numbers(const wlmi_message_check *check, int r, double leeway, double *max_rel_err) {
  const wlmi_message_array *array = array_of(check, r);
  const lines *of = lines_of(check, r);
  const wlmi_message_reference *reference = &check->reference[r];
  const wlm_type type = check->operands->spec.problem.dense_type;
  const int64_t n = array->width, bytes = n * (int64_t)array->size;
  int64_t wrong = 0, worst = 0;
  double worst_excess = 0;
  const wlm_status status = copy_lines(check, array, of);
  if (status != WLM_OK) return status;
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < of->count; at++)
    check->errors[at] = wlmi_reference_error(type, check->found + at * bytes, n, NULL, 1, n, reference->value + at * n,
                                             reference->scale + at * n);
  for (int64_t i = 0; i < of->count; i++) {
    const double error = check->errors[of->list[i].at], excess = error / tolerance_of(check, r, of->list[i].at);
    *max_rel_err = fmax(*max_rel_err, error);
    wrong += excess > leeway;
    if (excess > worst_excess) worst_excess = excess, worst = i;
  }
  if (!wrong) return WLM_OK;
  const char *const what = is_of_row(check, r) ? "row" : "edge";
  return wlmi_fail(WLM_ERR_MISMATCH,
                   "%s: %s %lld differs from float64 by %.3g of its terms' size, %.3g times the tolerance; %lld of "
                   "%lld %ss are wrong",
                   array->name, what, (long long)of->list[worst].in_memory, check->errors[of->list[worst].at],
                   worst_excess, (long long)wrong, (long long)of->count, what);
}

/* ---- positions ------------------------------------------------------------------------------------------ */

static int64_t position_at(const wlmi_message_check *check, size_t size, int64_t i) {
  return size == sizeof(int64_t) ? ((const int64_t *)(void *)check->found)[i]
                                 : ((const int32_t *)(void *)check->found)[i];
}

/* The edge of op(A) that has this position in A; -1 = the row has none. */
static int64_t edge_at(const wlmi_operands *o, int64_t row, int64_t position) {
  for (int64_t edge = o->a.rowptr[row]; edge < o->a.rowptr[row + 1]; edge++)
    if ((o->order ? o->order[edge] : edge) == position) return edge;
  return -1;
}

/* Whether rounding may let this edge win instead of the reference's. Edges with equal messages do not differ by
 * rounding: among them the lowest position wins. So does the first NaN. */
static int may_win(const wlmi_message_check *check, int r, int64_t i, int64_t column, int64_t found, int64_t wanted) {
  const wlmi_operands *o = check->operands;
  const wlm_type sums = wlmi_accumulator_type(o->spec.problem.dense_type);
  const int64_t row = check->rows[i], edge = edge_at(o, row, found), best = edge_at(o, row, wanted);
  double value, size, best_value, best_size;
  if (edge < 0 || best < 0) return 0;
  wlmi_reference_message_at(&check->walk, r, row, edge, column, &value, &size);
  wlmi_reference_message_at(&check->walk, r, row, best, column, &best_value, &best_size);
  if (isnan(value) || isnan(best_value) || value == best_value) return 0;
  if (wlmi_element_round(sums, value) == wlmi_element_round(sums, best_value)) return 1;
  return fabs(value - best_value) <= check->tolerances[i] * (size + best_size);
}

static wlm_status compare_positions(const wlmi_message_check *check, int r) {
  const wlmi_message_array *array = &check->operands->message->positions[r];
  const int64_t n = array->width, *wanted = check->reference[r].positions;
  int64_t wrong = 0, first = 0;
  if (!array->size) return WLM_OK;
  const wlm_status status = copy_lines(check, array, &check->of_rows);
  if (status != WLM_OK) return status;
  for (int64_t at = check->of_rows.count * n - 1; at >= 0; at--) {
    const int64_t found = position_at(check, array->size, at);
    if (found != wanted[at] && !may_win(check, r, at / n, at % n, found, wanted[at])) wrong++, first = at;
  }
  if (!wrong) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s: [%lld,%lld] is %lld instead of %lld; %lld of %lld are wrong", array->name,
                   (long long)check->rows[first / n], (long long)(first % n),
                   (long long)position_at(check, array->size, first), (long long)wanted[first], (long long)wrong,
                   (long long)(check->of_rows.count * n));
}

wlm_status wlmi_message_check_result(const wlmi_message_check *check, double leeway, double *max_rel_err) {
  wlm_status status = WLM_OK;
  *max_rel_err = 0;
  for (int r = 0; r < check->walk.message->results; r++) {
    WLM_TRY(compare_numbers(check, r, leeway, max_rel_err));
    WLM_TRY(compare_positions(check, r));
  }
done:
  return status;
}
