/* Vertices are numbered 0 .. rows - 1, and a community is a range of vertices. `names` gives the row and column number
 * of each vertex, so numbers can be scattered while communities stay ranges. A column is drawn in proportion to its
 * weight: a random ticket in [0, total) belongs to the column whose interval of the running sum contains it. The
 * tickets of a community are an interval as well, so drawing inside or outside of it is arithmetic. A guide table with
 * about one entry per column leaves a binary search among a few neighbours.
 *
 * Columns of a row are distinct: a bitmap marks those that were drawn, and a ticket for one of them is drawn again.
 * After many such repetitions (the row needs most of a community, or most of the matrix) the remaining columns come
 * from the whole matrix, and at last from the next free ones, so every row gets exactly its length. Each row has its
 * own random numbers, so rows are made in parallel in any order. */
#include "core/synth/columns.h"

#include "core/base/memory.h"
#include "core/base/random.h"

enum { BILLION = 1000000000, STREAM_ROW = 1, STREAM_VALUE = 2 };

typedef struct guide {
  const int64_t *weights;
  int32_t *first; /* column that holds ticket g << shift */
  int64_t size;
  int shift;
} guide;

static wlm_status guide_make(const int64_t *weights, int64_t cols, guide *g) {
  int64_t total = weights[cols];
  *g = (guide){.weights = weights};
  while (total >> g->shift > 2 * cols) g->shift++;
  g->size = (total >> g->shift) + 2;
  wlm_status status = wlmi_alloc_array(g->size, sizeof *g->first, "guide to the columns", (void **)&g->first);
  int64_t col = 0;
  for (int64_t i = 0; status == WLM_OK && i < g->size; i++) {
    while (col + 1 < cols && weights[col + 1] <= i << g->shift) col++;
    g->first[i] = (int32_t)col;
  }
  return status;
}

/* The column with weights[column] <= ticket < weights[column + 1]. */
static int32_t guide_find(const guide *g, int64_t ticket) {
  int32_t low = g->first[ticket >> g->shift], high = g->first[(ticket >> g->shift) + 1];
  while (low < high) {
    int32_t middle = low + (high - low + 1) / 2;
    if (g->weights[middle] <= ticket)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* One thread's memory for one row. */
typedef struct scratch {
  uint64_t *taken;   /* one bit per column */
  int32_t *columns;  /* the columns drawn so far */
  uint64_t *entries; /* twice the longest row, for sorting */
  int64_t count;
} scratch;

static int scratch_open(scratch *l, int64_t cols, int64_t longest) {
  *l = (scratch){wlmi_alloc_zero((size_t)cols / 64 + 1, 8), wlmi_alloc_zero((size_t)longest, 4),
                 wlmi_alloc_zero((size_t)longest, 16), 0};
  return l->taken && l->columns && l->entries;
}

static void scratch_close(scratch *l) {
  wlmi_free(l->taken);
  wlmi_free(l->columns);
  wlmi_free(l->entries);
}

static void take(scratch *l, int64_t column) {
  uint64_t bit = UINT64_C(1) << (column & 63), *word = &l->taken[column >> 6];
  if (*word & bit) return;
  *word |= bit;
  l->columns[l->count++] = (int32_t)column;
}

/* Draws until the row has `wanted` columns, with a limited number of attempts. Tickets are 0 .. tickets - 1 plus
 * `offset`; those from `hole` on skip `hole_size` more, which leaves a community out. */
static void draw(scratch *l, const guide *g, wlmi_random *random, int64_t wanted, int64_t offset, int64_t tickets,
                 int64_t hole, int64_t hole_size) {
  int64_t attempts = 4 * (wanted - l->count) + 32;
  while (l->count < wanted && tickets > 0 && attempts-- > 0) {
    int64_t ticket = offset + wlmi_random_below(random, tickets);
    take(l, guide_find(g, ticket < hole ? ticket : ticket + hole_size));
  }
}

static void draw_row(const wlmi_columns_wanted *w, const guide *g, int64_t vertex, scratch *l) {
  wlmi_random random = wlmi_random_for(w->seed, STREAM_ROW, (uint64_t)vertex);
  int64_t degree = w->degrees[vertex], total = w->weights[w->cols], community = vertex * w->communities / w->rows;
  int64_t first = w->communities > 1 ? (community * w->rows + w->communities - 1) / w->communities : 0;
  int64_t end = w->communities > 1 ? ((community + 1) * w->rows + w->communities - 1) / w->communities : w->cols;
  int64_t offset = w->weights[first], inside = w->weights[end] - offset;
  int64_t local = (degree * w->local + wlmi_random_below(&random, BILLION)) / BILLION;
  if (local > (end - first) / 2) local = (end - first) / 2;
  l->count = 0;
  if (w->communities > 1) {
    draw(l, g, &random, local, offset, inside, total, 0);
    draw(l, g, &random, degree, 0, total - inside, offset, inside);
  }
  draw(l, g, &random, degree, 0, total, total, 0);
  for (int64_t column = wlmi_random_below(&random, w->cols); l->count < degree; column = (column + 1) % w->cols)
    take(l, column);
}

/* A value by row and column: a multiple of 1/128 in [0.5, 1.5). */
static float value_of(uint64_t row_key, int32_t col) {
  return (float)(64 + (int)(wlmi_mix(row_key + (uint64_t)col * WLMI_GOLDEN) >> 57)) / 128.0f;
}

static void write_row(const wlmi_columns_wanted *w, int64_t row, scratch *l, wlmi_csr_host *out) {
  int64_t start = out->rowptr[row];
  uint64_t row_key = wlmi_random_for(w->seed, STREAM_VALUE, (uint64_t)row).state;
  for (int64_t i = 0; i < l->count; i++) {
    int32_t column = l->columns[i];
    l->taken[column >> 6] = 0;
    l->entries[i] = wlmi_row_entry(w->names ? w->names[column] : column, 0);
  }
  wlmi_sort_entries(l->entries, l->entries + l->count, l->count);
  for (int64_t i = 0; i < l->count; i++) {
    out->colind[start + i] = wlmi_entry_column(l->entries[i]);
    out->values[start + i] = value_of(row_key, out->colind[start + i]);
  }
}

static wlm_status draw_rows(const wlmi_columns_wanted *w, const guide *g, wlmi_csr_host *out) {
  int64_t longest = 0;
  int failed = 0;
  for (int64_t i = 0; i < w->rows; i++)
    if (w->degrees[i] > longest) longest = w->degrees[i];
#pragma omp parallel reduction(+ : failed)
  {
    scratch l;
    int open = scratch_open(&l, w->cols, longest);
    failed += !open;
#pragma omp for schedule(dynamic, 64)
    for (int64_t vertex = 0; vertex < w->rows; vertex++) {
      if (!open || !w->degrees[vertex]) continue;
      draw_row(w, g, vertex, &l);
      write_row(w, w->names ? w->names[vertex] : vertex, &l, out);
    }
    scratch_close(&l);
  }
  return failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "drawing rows of %lld entries", (long long)longest) : WLM_OK;
}

wlm_status wlmi_columns_make(const wlmi_columns_wanted *w, wlmi_csr_host *out) {
  wlmi_csr_host csr = {.rows = w->rows, .cols = w->cols};
  guide g = {0};
  wlm_status status;
  *out = (wlmi_csr_host){0};
  WLM_TRY(wlmi_alloc_array(w->rows + 1, sizeof *csr.rowptr, "rowptr", (void **)&csr.rowptr));
  csr.rowptr[0] = 0;
  for (int64_t vertex = 0; vertex < w->rows; vertex++)
    csr.rowptr[(w->names ? w->names[vertex] : vertex) + 1] = w->degrees[vertex];
  for (int64_t row = 0; row < w->rows; row++) csr.rowptr[row + 1] += csr.rowptr[row];
  csr.nnz = csr.rowptr[w->rows];
  WLM_TRY(wlmi_alloc_array(csr.nnz, sizeof *csr.colind, "colind", (void **)&csr.colind));
  WLM_TRY(wlmi_alloc_array(csr.nnz, sizeof *csr.values, "values", (void **)&csr.values));
  WLM_TRY(guide_make(w->weights, w->cols, &g));
  WLM_TRY(draw_rows(w, &g, &csr));
  *out = csr;
  csr = (wlmi_csr_host){0};
done:
  wlmi_free(g.first);
  wlmi_csr_host_release(&csr);
  return status;
}
