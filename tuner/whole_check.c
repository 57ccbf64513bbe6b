/* No bound of rounding errors is known for every operation: an element of a sum that cancels may be off by much of its
 * value. So the second reference only singles lines out, and float64 decides.
 *
 * A line passes if it differs from the second reference by less than its tolerance times its largest element, which is
 * at most the size of the terms that float64 measures errors by, except where terms cancel. Positions pass if they are
 * equal. The rows of all other lines are compared with the float64 reference of these rows, those that are farthest off
 * first. The size of the terms that it finds for a line is kept, so a line that cancels is singled out for the first
 * result only. */
#include "tuner/whole_check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/reference/reference.h"
#include "tuner/second_reference.h"
#include "tuner/tolerance.h"

enum { BATCH_ROWS = 4096, BATCH_NUMBERS = 1 << 22 /* of edges */ };

/* A line that is not close to the second reference. */
typedef struct suspect {
  int64_t line; /* of an output; later its row of the result */
  double excess;
} suspect;

typedef struct suspects {
  suspect *list;
  int64_t count, room;
} suspects;

struct wlmi_whole_check {
  const wlmi_operands *operands;
  wlmi_second_reference reference;
  float *sizes[WLM_MAX_OUTPUTS]; /* of the terms of each line of numbers, as far as known */
  double *nothing;               /* zeros, as many as the widest line has elements */
};

/* ---- making it ------------------------------------------------------------------------------------------- */

static wlm_status make(const wlmi_operands *o, const wlmi_output_check *chosen, double host_products,
                       wlmi_whole_check *check) {
  int64_t widest = 1;
  WLM_CHECK(wlmi_second_reference_make(o, chosen, host_products, &check->reference));
  for (int i = 0; i < o->outputs; i++) {
    const wlmi_call_array *output = &o->output[i];
    widest = output->width > widest ? output->width : widest;
    if (output->is_positions) continue;
    check->sizes[i] = wlmi_alloc_zero((size_t)output->lines, sizeof *check->sizes[i]);
    if (!check->sizes[i]) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "sizes of lines");
  }
  check->nothing = wlmi_alloc_zero((size_t)widest, sizeof *check->nothing);
  return check->nothing ? WLM_OK : wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a line of zeros");
}

wlm_status wlmi_whole_check_create(const wlmi_operands *operands, const wlmi_output_check *chosen, double host_products,
                                   wlmi_whole_check **out) {
  *out = NULL;
  wlmi_whole_check *check = wlmi_alloc_zero(1, sizeof *check);
  if (!check) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a check of whole results");
  check->operands = operands;
  if (make(operands, chosen, host_products, check) == WLM_OK) {
    *out = check;
    return WLM_OK;
  }
  wlmi_log(WLM_LOG_INFO, "only some rows of results are compared: %s", wlm_error_detail());
  wlmi_clear_error();
  wlmi_whole_check_destroy(check);
  return WLM_OK;
}

void wlmi_whole_check_destroy(wlmi_whole_check *check) {
  if (!check) return;
  wlmi_second_reference_release(&check->reference);
  for (int i = 0; i < WLM_MAX_OUTPUTS; i++) wlmi_free(check->sizes[i]);
  wlmi_free(check->nothing);
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

static wlm_status add(suspects *to, int64_t line, double excess) {
  const wlm_status status =
      wlmi_grow((void **)&to->list, to->count, &to->room, sizeof *to->list, "lines to compare with float64");
  if (status == WLM_OK) to->list[to->count++] = (suspect){line, excess};
  return status;
}

static wlm_status find_in_output(const wlmi_whole_check *check, int i, double leeway, suspects *to) {
  const wlmi_call_array *output = &check->operands->output[i];
  wlm_status status = WLM_OK;
  for (wlmi_pieces p = {.operands = check->operands, .array = output}; wlmi_pieces_next(&p, &status);) {
#pragma omp parallel for schedule(static)
    for (int64_t line = 0; line < p.lines; line++) {
      const char *found = p.data + line * output->ld * (int64_t)output->size;
      const double excess = output->is_positions ? excess_of_positions(check, i, p.first + line, found)
                                                 : excess_of_numbers(check, i, p.first + line, found);
      if (excess <= leeway) continue;
#pragma omp critical
      if (status == WLM_OK) status = add(to, p.first + line, excess);
    }
  }
  return status;
}

/* ---- from lines to rows ---------------------------------------------------------------------------------- */

static int by_line(const void *left, const void *right) {
  const suspect *a = left, *b = right;
  return (a->line > b->line) - (a->line < b->line);
}

static int by_excess(const void *left, const void *right) {
  const suspect *a = left, *b = right;
  return a->excess != b->excess ? (a->excess < b->excess ? 1 : -1) : by_line(left, right);
}

/* Adds the rows of op(A) that the listed edges of A are of. */
static wlm_status add_rows_of_edges(const wlmi_operands *o, const suspects *edges, suspects *rows) {
  wlm_status status = WLM_OK;
  if (!edges->count) return WLM_OK;
  qsort(edges->list, (size_t)edges->count, sizeof *edges->list, by_line);
  for (int64_t row = 0; row < o->a.rows && status == WLM_OK; row++)
    for (int64_t at = o->a.rowptr[row]; at < o->a.rowptr[row + 1] && status == WLM_OK; at++) {
      const suspect edge = {o->order ? o->order[at] : at, 0};
      const suspect *found = bsearch(&edge, edges->list, (size_t)edges->count, sizeof edge, by_line);
      if (found) status = add(rows, row, found->excess);
    }
  return status;
}

/* Each row once, those that are farthest off first. */
static void sort_rows(suspects *rows) {
  int64_t kept = 0;
  if (!rows->count) return;
  qsort(rows->list, (size_t)rows->count, sizeof *rows->list, by_line);
  for (int64_t i = 0; i < rows->count; i++) {
    if (kept && rows->list[kept - 1].line == rows->list[i].line)
      rows->list[kept - 1].excess = fmax(rows->list[kept - 1].excess, rows->list[i].excess);
    else
      rows->list[kept++] = rows->list[i];
  }
  rows->count = kept;
  qsort(rows->list, (size_t)kept, sizeof *rows->list, by_excess);
}

static wlm_status find_rows(const wlmi_whole_check *check, double leeway, suspects *rows) {
  const wlmi_operands *o = check->operands;
  suspects edges = {0};
  wlm_status status = WLM_OK;
  for (int i = 0; i < o->outputs; i++) WLM_TRY(find_in_output(check, i, leeway, o->output[i].of_edges ? &edges : rows));
  WLM_TRY(add_rows_of_edges(o, &edges, rows));
  sort_rows(rows);
done:
  wlmi_free(edges.list);
  return status;
}

/* ---- float64 decides ------------------------------------------------------------------------------------- */

/* How many of the first rows are compared at once; their edges must fit, except those of a single row. */
static int64_t batch_of(const wlmi_operands *o, const suspect *rows, int64_t count) {
  const int64_t each = wlmi_edge_numbers(o);
  int64_t numbers = 0, taken = 0;
  for (; taken < count && taken < BATCH_ROWS; taken++) {
    const int64_t row = rows[taken].line;
    numbers += each ? each * (o->a.rowptr[row + 1] - o->a.rowptr[row]) : 0;
    if (taken && numbers > BATCH_NUMBERS) break;
  }
  return taken;
}

static void keep_size(void *user, int64_t line, double size) {
  float *const sizes = user;
  if (size > (double)sizes[line] && size < FLT_MAX) sizes[line] = (float)size;
}

/* Sorts the rows by their number. */
static wlm_status decide(wlmi_whole_check *check, suspect *rows, int64_t count, double leeway, double *max_rel_err) {
  const wlmi_operands *o = check->operands;
  int64_t *ids = NULL;
  double error = 0;
  wlmi_output_check *exact = NULL;
  wlm_status status;
  qsort(rows, (size_t)count, sizeof *rows, by_line);
  WLM_TRY(wlmi_alloc_array(count, sizeof *ids, "rows to check", (void **)&ids));
  for (int64_t i = 0; i < count; i++) ids[i] = rows[i].line;
  WLM_TRY(wlmi_output_check_create(o, ids, count, INT64_MAX, &exact));
  status = wlmi_output_check_result(exact, leeway, &error);
  *max_rel_err = fmax(*max_rel_err, error);
  for (int i = 0; i < o->outputs && status == WLM_OK; i++)
    if (!o->output[i].is_positions) wlmi_output_check_sizes(exact, &o->output[i], keep_size, check->sizes[i]);
done:
  wlmi_output_check_destroy(exact);
  wlmi_free(ids);
  return status;
}

wlm_status wlmi_whole_check_result(wlmi_whole_check *check, double leeway, double *max_rel_err) {
  suspects rows = {0};
  wlm_status status;
  WLM_TRY(find_rows(check, leeway, &rows));
  for (int64_t first = 0, count; first < rows.count; first += count) {
    count = batch_of(check->operands, rows.list + first, rows.count - first);
    WLM_TRY(decide(check, rows.list + first, count, leeway, max_rel_err));
  }
done:
  wlmi_free(rows.list);
  return status;
}
