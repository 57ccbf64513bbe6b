/* Compares the outputs of a call on chosen lines with the float64 reference.
 *
 * A chosen row brings its line of each output of rows, and the lines of its edges of each output of edges. Argmax
 * indices of products must match exactly (core/reference/reference.h gives the reason why they can). */
#include "tuner/output_check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/reference/attention.h"
#include "core/reference/gradient.h"
#include "core/reference/message.h"
#include "tuner/tolerance.h"

enum {
  PIECE_BYTES = 1 << 24, /* of a run */
  NEAR_BYTES = 1 << 16   /* between its lines, as copying these takes no longer */
};

/* A line of a result in memory, and its place in the reference. */
typedef struct line {
  int64_t in_memory, at;
} line;

typedef struct lines {
  line *list;
  int64_t count;
} lines;

struct wlmi_output_check {
  const wlmi_operands *operands;
  wlmi_message_walk walk; /* of a message */
  int64_t *rows;
  double *repeats;     /* of each row: what its repeated entries add to the tolerance */
  int64_t *edge_first; /* of each row: the line of its first edge in the reference */
  int64_t count;       /* of rows */
  lines of_rows, of_edges;
  wlmi_reference_result reference[WLM_MAX_RESULTS]; /* the numbers and positions of an output have the same one */
  char *piece, *found; /* a run as it lies in memory; the lines to compare, in the order of the reference */
  double *errors;      /* of each line */
};

static const lines *lines_of(const wlmi_output_check *check, const wlmi_call_array *output) {
  return output->of_edges ? &check->of_edges : &check->of_rows;
}

/* ---- the lines to compare ------------------------------------------------------------------------------- */

int64_t wlmi_edge_numbers(const wlmi_operands *operands) {
  int64_t numbers = 0;
  for (int i = 0; i < operands->outputs; i++)
    if (operands->output[i].of_edges) numbers += operands->output[i].width;
  return numbers;
}

static void choose_edges(wlmi_output_check *check, int64_t most_numbers) {
  const int64_t *rowptr = check->operands->a.rowptr, each = wlmi_edge_numbers(check->operands);
  check->edge_first[0] = 0;
  for (int64_t i = 0; i < check->count; i++) {
    const int64_t first = check->edge_first[i], edges = each ? rowptr[check->rows[i] + 1] - rowptr[check->rows[i]] : 0;
    check->edge_first[i + 1] = first + (each && edges <= most_numbers / each - first ? edges : 0);
  }
}

static int compare_lines(const void *left, const void *right) {
  const line *a = left, *b = right;
  return (a->in_memory > b->in_memory) - (a->in_memory < b->in_memory);
}

static wlm_status find_lines(wlmi_output_check *check) {
  const wlmi_operands *o = check->operands;
  lines *rows = &check->of_rows, *edges = &check->of_edges;
  WLM_CHECK(wlmi_alloc_array(check->count, sizeof(line), "rows to check", (void **)&rows->list));
  WLM_CHECK(wlmi_alloc_array(check->edge_first[check->count], sizeof(line), "edges to check", (void **)&edges->list));
  for (int64_t i = 0; i < check->count; i++) {
    int64_t edge = o->a.rowptr[check->rows[i]];
    rows->list[rows->count++] = (line){check->rows[i], i};
    for (int64_t at = check->edge_first[i]; at < check->edge_first[i + 1]; at++, edge++)
      edges->list[edges->count++] = (line){o->order ? o->order[edge] : edge, at};
  }
  if (o->order) qsort(edges->list, (size_t)edges->count, sizeof *edges->list, compare_lines);
  return WLM_OK;
}

/* ---- the reference -------------------------------------------------------------------------------------- */

/* Of all outputs; those of numbers have elements of up to 8 bytes. */
static wlm_status make_room(wlmi_output_check *check) {
  const wlmi_operands *o = check->operands;
  int64_t found = 0, piece = PIECE_BYTES, most_lines = 0;
  for (int i = 0; i < o->outputs; i++) {
    const wlmi_call_array *output = &o->output[i];
    wlmi_reference_result *to = &check->reference[output->result];
    const int64_t lines = lines_of(check, output)->count, size = (int64_t)sizeof(double);
    const int64_t count = lines * output->width, row = output->ld * size;
    found = count * size > found ? count * size : found;
    piece = row > piece ? row : piece;
    most_lines = lines > most_lines ? lines : most_lines;
    if (output->is_positions) {
      WLM_CHECK(wlmi_alloc_array(count, sizeof *to->positions, "positions", (void **)&to->positions));
      continue;
    }
    WLM_CHECK(wlmi_alloc_array(count, sizeof *to->value, "reference", (void **)&to->value));
    WLM_CHECK(wlmi_alloc_array(count, sizeof *to->scale, "scale of the reference", (void **)&to->scale));
  }
  WLM_CHECK(wlmi_alloc_array(found, 1, "results", (void **)&check->found));
  WLM_CHECK(wlmi_alloc_array(piece, 1, "a piece of a result", (void **)&check->piece));
  return wlmi_alloc_array(most_lines, sizeof *check->errors, "errors", (void **)&check->errors);
}

static wlmi_message_walk walk_of(const wlmi_operands *o) {
  return (wlmi_message_walk){.a = &o->a,
                             .bias = o->host.bias,
                             .problem = &o->spec.problem,
                             .message = &o->message->message,
                             .call = &o->message->host,
                             .order = o->order,
                             .rowptr = o->message->rowptr,
                             .seed = o->host.seed};
}

static wlm_status compute(const wlmi_output_check *check) {
  const wlmi_operands *o = check->operands;
  const int64_t *rows = check->rows, *edge_first = check->edge_first, count = check->count;
  const wlmi_reference_result *c = &check->reference[0];
  const wlmi_attention_walk attention = {&o->a, &o->spec.problem, &o->host, o->order};
  wlm_problem problem = o->spec.problem;
  if (o->message) return wlmi_reference_message(&check->walk, rows, count, edge_first, c);
  if (wlmi_is_attention(&problem)) return wlmi_reference_attention(&attention, rows, count, edge_first, c);
  if (problem.operation == WLM_SDDMM)
    return wlmi_reference_edges(&o->a, &problem, &o->host, rows, count, edge_first, c);
  problem.transpose = 0; /* a is op(A) */
  WLM_CHECK(wlmi_reference_rows(&o->a, &problem, &o->host, rows, count, c));
  for (int64_t i = 0; c->positions && o->order && i < count * problem.n; i++)
    if (c->positions[i] >= 0) c->positions[i] = o->order[c->positions[i]]; /* with transpose those in A itself */
  return WLM_OK;
}

wlm_status wlmi_output_check_create(const wlmi_operands *operands, const int64_t *rows, int64_t count,
                                    int64_t most_edge_numbers, wlmi_output_check **out) {
  wlm_status status;
  *out = NULL;
  wlmi_output_check *check = wlmi_alloc_zero(1, sizeof *check);
  if (!check) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a check of outputs");
  check->operands = operands;
  if (operands->message) check->walk = walk_of(operands);
  check->count = count;
  WLM_TRY(wlmi_alloc_array(count, sizeof *rows, "rows to check", (void **)&check->rows));
  WLM_TRY(wlmi_alloc_array(count, sizeof *check->repeats, "tolerances", (void **)&check->repeats));
  WLM_TRY(wlmi_alloc_array(count + 1, sizeof *rows, "edges to check", (void **)&check->edge_first));
  memcpy(check->rows, rows, (size_t)count * sizeof *rows);
  WLM_TRY(wlmi_repeats_tolerance(operands, rows, count, check->repeats));
  choose_edges(check, most_edge_numbers);
  WLM_TRY(find_lines(check));
  WLM_TRY(make_room(check));
  WLM_TRY(compute(check));
  *out = check;
  check = NULL;
done:
  wlmi_output_check_destroy(check);
  return status;
}

void wlmi_output_check_destroy(wlmi_output_check *check) {
  if (!check) return;
  for (int r = 0; r < WLM_MAX_RESULTS; r++) {
    wlmi_free(check->reference[r].value);
    wlmi_free(check->reference[r].scale);
    wlmi_free(check->reference[r].positions);
  }
  wlmi_free(check->rows);
  wlmi_free(check->repeats);
  wlmi_free(check->edge_first);
  wlmi_free(check->of_rows.list);
  wlmi_free(check->of_edges.list);
  wlmi_free(check->piece);
  wlmi_free(check->found);
  wlmi_free(check->errors);
  wlmi_free(check);
}

int64_t wlmi_output_check_edges(const wlmi_output_check *check) { return check->of_edges.count; }

/* ---- one call ------------------------------------------------------------------------------------------- */

/* Copies the lines of an output to `found`. */
static wlm_status copy_lines(const wlmi_output_check *check, const lines *of, const wlmi_operands *from,
                             const wlmi_call_array *output) {
  const int64_t row = output->ld * (int64_t)output->size, used = output->width * (int64_t)output->size;
  for (int64_t i = 0, run; i < of->count && used; i += run) {
    const line *first = &of->list[i];
    run = 1;
    while (i + run < of->count && (first[run].in_memory - first[run - 1].in_memory) * row <= NEAR_BYTES + row &&
           (first[run].in_memory - first->in_memory + 1) * row <= PIECE_BYTES)
      run++;
    const int64_t apart = first[run - 1].in_memory - first->in_memory;
    WLM_CHECK(wlmi_call_array_read(from, output, first->in_memory, apart + 1, check->piece));
    for (int64_t k = 0; k < run; k++)
      memcpy(check->found + first[k].at * used, check->piece + (first[k].in_memory - first->in_memory) * row,
             (size_t)used);
  }
  return WLM_OK;
}

/* Of a line of the reference. */
static double tolerance_of(const wlmi_output_check *check, const wlmi_call_array *output, int64_t at) {
  const double tolerance = wlmi_output_tolerance(check->operands, output, output->of_edges ? -1 : check->rows[at]);
  return tolerance + (output->of_edges ? 0 : check->repeats[at]);
}

/* `output` is the one of `from` whose tolerance is that of `meant`. */
static wlm_status compare_numbers(const wlmi_output_check *check, const wlmi_operands *from, int number, double leeway,
                                  double *max_rel_err) {
  const wlmi_call_array *output = &from->output[number], *meant = &check->operands->output[number];
  const lines *of = lines_of(check, output);
  const wlmi_reference_result *reference = &check->reference[output->result];
  const int64_t n = output->width, bytes = n * (int64_t)output->size;
  int64_t wrong = 0, worst = 0;
  double worst_excess = 0;
  WLM_CHECK(copy_lines(check, of, from, output));
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < of->count; i++) {
    const int64_t at = of->list[i].at;
    check->errors[at] = wlmi_reference_error(output->type, check->found + at * bytes, n, NULL, 1, n,
                                             reference->value + at * n, reference->scale + at * n);
  }
  for (int64_t i = 0; i < of->count; i++) {
    const double error = check->errors[of->list[i].at], excess = error / tolerance_of(check, meant, of->list[i].at);
    *max_rel_err = fmax(*max_rel_err, error);
    wrong += excess > leeway;
    if (excess > worst_excess) worst_excess = excess, worst = i;
  }
  if (!wrong) return WLM_OK;
  const char *const noun = output->of_edges ? "edge" : "row";
  return wlmi_fail(WLM_ERR_MISMATCH,
                   "%s: %s %lld differs from float64 by %.3g of its terms' size, %.3g times the tolerance; %lld of "
                   "%lld %ss are wrong",
                   output->name, noun, (long long)of->list[worst].in_memory, check->errors[of->list[worst].at],
                   worst_excess, (long long)wrong, (long long)of->count, noun);
}

/* ---- positions ------------------------------------------------------------------------------------------ */

static int64_t position_at(const wlmi_output_check *check, const wlmi_call_array *output, int64_t i) {
  return wlmi_position_at(check->operands, output, check->found, i, check->rows[i / output->width]);
}

/* The edge of op(A) that has this position in A; -1 = the row has none. */
static int64_t edge_at(const wlmi_operands *o, int64_t row, int64_t position) {
  for (int64_t edge = o->a.rowptr[row]; edge < o->a.rowptr[row + 1]; edge++)
    if ((o->order ? o->order[edge] : edge) == position) return edge;
  return -1;
}

/* Whether rounding may let this edge win instead of the reference's. Edges with equal messages do not differ by
 * rounding: among them the lowest position wins. So does the first NaN. */
static int may_win(const wlmi_output_check *check, int r, int64_t i, int64_t column, int64_t found, int64_t wanted) {
  const wlmi_operands *o = check->operands;
  if (!o->message) return 0;
  const wlm_type sums = wlmi_accumulator_type(o->spec.problem.dense_type);
  const int64_t row = check->rows[i], edge = edge_at(o, row, found), best = edge_at(o, row, wanted);
  double value, size, best_value, best_size;
  if (edge < 0 || best < 0) return 0;
  wlmi_reference_message_at(&check->walk, r, row, edge, column, &value, &size);
  wlmi_reference_message_at(&check->walk, r, row, best, column, &best_value, &best_size);
  if (isnan(value) || isnan(best_value) || value == best_value) return 0;
  if (wlmi_element_round(sums, value) == wlmi_element_round(sums, best_value)) return 1;
  return fabs(value - best_value) <=
         (wlmi_tolerance(&o->spec.problem, wlmi_edges_of_row(&o->a, &o->spec.problem, row)) + check->repeats[i]) *
             (size + best_size);
}

static wlm_status compare_positions(const wlmi_output_check *check, const wlmi_call_array *output) {
  const lines *of = &check->of_rows;
  const int64_t n = output->width, *wanted = check->reference[output->result].positions;
  int64_t wrong = 0, first = 0;
  WLM_CHECK(copy_lines(check, of, check->operands, output));
  for (int64_t i = of->count * n - 1; i >= 0; i--) {
    const int64_t at = of->list[i / n].at * n + i % n, found = position_at(check, output, at);
    if (found != wanted[at] && !may_win(check, output->result, at / n, at % n, found, wanted[at])) wrong++, first = at;
  }
  if (!wrong) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s: [%lld,%lld] is %lld instead of %lld; %lld of %lld are wrong", output->name,
                   (long long)check->rows[first / n], (long long)(first % n),
                   (long long)position_at(check, output, first), (long long)wanted[first], (long long)wrong,
                   (long long)(of->count * n));
}

wlm_status wlmi_output_check_result(const wlmi_output_check *check, const wlmi_operands *found, double leeway,
                                    double *max_rel_err) {
  *max_rel_err = 0;
  for (int i = 0; i < found->outputs; i++)
    if (!found->output[i].is_positions)
      WLM_CHECK(compare_numbers(check, found, i, leeway, max_rel_err));
    else if (found == check->operands)
      WLM_CHECK(compare_positions(check, &found->output[i]));
  return WLM_OK;
}

void wlmi_output_check_sizes(const wlmi_output_check *check, int output, float *sizes) {
  const wlmi_call_array *of = &check->operands->output[output];
  const lines *list = lines_of(check, of);
  for (int64_t i = 0; i < list->count; i++) {
    const double *scale = check->reference[of->result].scale + list->list[i].at * of->width;
    float *size = &sizes[list->list[i].in_memory];
    double least = FLT_MAX;
    for (int64_t j = 0; j < of->width; j++) least = fmin(least, scale[j]);
    if (least > (double)*size && least < FLT_MAX) *size = (float)least;
  }
}
