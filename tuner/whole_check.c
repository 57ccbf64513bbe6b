/* No bound of rounding errors is known for every operation: an element of a sum that cancels may be off by much of its
 * value. So the second reference only singles lines out, and float64 decides.
 *
 * A line passes if it differs from the second reference by less than its tolerance times its largest element, which is
 * at most the size of the terms that float64 measures errors by, except where terms cancel. Positions pass if they are
 * equal. The rows of all other lines are compared with the float64 reference of these rows. The size of the terms that
 * it finds for a line is kept, so a line that cancels is singled out for the first result only. */
#include "tuner/whole_check.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/reference/reference.h"
#include "tuner/second_reference.h"
#include "tuner/tolerance.h"

enum { BATCH_ROWS = 4096, BATCH_NUMBERS = 1 << 22 /* of edges */ };

struct wlmi_whole_check {
  const wlmi_operands *operands;
  wlmi_second_reference reference;
  float *sizes[WLMI_MAX_OUTPUTS]; /* of the terms of each line of numbers, as far as known */
  double *nothing;                /* zeros, as many as the widest line has elements */
  char *rows, *edges;             /* of each of op(A) and of A: 1 = a line of the present result is singled out */
};

/* ---- making it ------------------------------------------------------------------------------------------- */

static wlm_status make(const wlmi_operands *o, const wlmi_output_check *chosen, wlmi_whole_check *check) {
  int64_t widest = 1;
  WLM_CHECK(wlmi_second_reference_make(o, chosen, &check->reference));
  for (int i = 0; i < o->outputs; i++) {
    const wlmi_call_array *output = &o->output[i];
    widest = output->width > widest ? output->width : widest;
    if (output->is_positions) continue;
    check->sizes[i] = wlmi_alloc_zero((size_t)output->lines, sizeof *check->sizes[i]);
    if (!check->sizes[i]) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "sizes of lines");
  }
  check->nothing = wlmi_alloc_zero((size_t)widest, sizeof *check->nothing);
  check->rows = wlmi_alloc_zero((size_t)o->a.rows, 1);
  check->edges = wlmi_alloc_zero(wlmi_edge_numbers(o) ? (size_t)o->a.nnz : 1, 1);
  return check->nothing && check->rows && check->edges ? WLM_OK : wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "marks of lines");
}

wlm_status wlmi_whole_check_create(const wlmi_operands *operands, const wlmi_output_check *chosen,
                                   wlmi_whole_check **out) {
  wlmi_whole_check *check = wlmi_alloc_zero(1, sizeof *check);
  *out = check;
  if (!check) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a check of whole results");
  check->operands = operands;
  const wlm_status status = make(operands, chosen, check);
  if (status == WLM_OK) return status;
  *out = NULL;
  wlmi_whole_check_destroy(check);
  return status;
}

void wlmi_whole_check_destroy(wlmi_whole_check *check) {
  if (!check) return;
  wlmi_second_reference_release(&check->reference);
  for (int i = 0; i < WLMI_MAX_OUTPUTS; i++) wlmi_free(check->sizes[i]);
  wlmi_free(check->nothing);
  wlmi_free(check->rows);
  wlmi_free(check->edges);
  wlmi_free(check);
}

/* ---- singling lines out ---------------------------------------------------------------------------------- */

/* How many times its tolerance a line of numbers is off. */
static double excess_of_numbers(const wlmi_whole_check *check, int i, int64_t line, const char *found) {
  const wlmi_call_array *output = &check->operands->output[i];
  const int64_t n = output->width;
  const double *reference = check->reference.numbers[i] + line * n;
  double size = check->sizes[i][line];
  const double off = wlmi_reference_error(output->type, found, n, NULL, 1, n, reference, check->nothing);
  if (off == 0) return 0;
  for (int64_t j = 0; j < n; j++)
    if (isfinite(reference[j])) size = fmax(size, fabs(reference[j]));
  return off / (wlmi_output_tolerance(check->operands, output, line) * size);
}

static double excess_of_positions(const wlmi_whole_check *check, int i, int64_t line, const char *found) {
  const wlmi_call_array *output = &check->operands->output[i];
  const int64_t *reference = check->reference.positions[i] + line * output->width;
  for (int64_t j = 0; j < output->width; j++) {
    const int64_t position = wlmi_position_at(check->operands, output, found, j, line);
    if (position != reference[j]) return INFINITY;
  }
  return 0;
}

/* Marks the rows or the edges whose lines are not close to the reference. */
static wlm_status mark_lines(wlmi_whole_check *check, int i, double leeway) {
  const wlmi_call_array *output = &check->operands->output[i];
  char *const marks = output->of_edges ? check->edges : check->rows;
  wlm_status status = WLM_OK;
  for (wlmi_pieces p = {.operands = check->operands, .array = output}; wlmi_pieces_next(&p, &status);) {
#pragma omp parallel for schedule(static)
    for (int64_t line = 0; line < p.lines; line++) {
      const char *found = p.data + line * output->ld * (int64_t)output->size;
      const double excess = output->is_positions ? excess_of_positions(check, i, p.first + line, found)
                                                 : excess_of_numbers(check, i, p.first + line, found);
      if (!(excess <= leeway)) marks[p.first + line] = 1;
    }
  }
  return status;
}

/* Marks the rows of op(A) whose edges are marked. */
static void mark_rows(wlmi_whole_check *check) {
  const wlmi_operands *o = check->operands;
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t row = 0; row < o->a.rows; row++)
    for (int64_t at = o->a.rowptr[row]; at < o->a.rowptr[row + 1]; at++)
      check->rows[row] |= check->edges[o->order ? o->order[at] : at];
}

static wlm_status mark(wlmi_whole_check *check, double leeway) {
  const wlmi_operands *o = check->operands;
  const int has_edges = wlmi_edge_numbers(o) > 0;
  memset(check->rows, 0, (size_t)o->a.rows);
  if (has_edges) memset(check->edges, 0, (size_t)o->a.nnz);
  for (int i = 0; i < o->outputs; i++) WLM_CHECK(mark_lines(check, i, leeway));
  if (has_edges) mark_rows(check);
  return WLM_OK;
}

/* ---- float64 decides ------------------------------------------------------------------------------------- */

static wlm_status decide(wlmi_whole_check *check, const int64_t *rows, int64_t count, double leeway,
                         double *max_rel_err) {
  const wlmi_operands *o = check->operands;
  double error = 0;
  wlmi_output_check *exact = NULL;
  WLM_CHECK(wlmi_output_check_create(o, rows, count, INT64_MAX, &exact));
  const wlm_status status = wlmi_output_check_result(exact, 0, leeway, &error);
  *max_rel_err = fmax(*max_rel_err, error);
  for (int i = 0; i < o->outputs && status == WLM_OK; i++)
    if (!o->output[i].is_positions) wlmi_output_check_sizes(exact, i, check->sizes[i]);
  wlmi_output_check_destroy(exact);
  return status;
}

wlm_status wlmi_whole_check_result(wlmi_whole_check *check, double leeway, double *max_rel_err) {
  const wlmi_operands *o = check->operands;
  const int64_t each = wlmi_edge_numbers(o);
  int64_t rows[BATCH_ROWS], count = 0, numbers = 0;
  WLM_CHECK(mark(check, leeway));
  for (int64_t row = 0; row < o->a.rows; row++) {
    if (!check->rows[row]) continue;
    const int64_t more = each * (o->a.rowptr[row + 1] - o->a.rowptr[row]);
    if (count == BATCH_ROWS || (count && numbers + more > BATCH_NUMBERS)) {
      WLM_CHECK(decide(check, rows, count, leeway, max_rel_err));
      count = numbers = 0;
    }
    rows[count++] = row;
    numbers += more;
  }
  return count ? decide(check, rows, count, leeway, max_rel_err) : WLM_OK;
}
