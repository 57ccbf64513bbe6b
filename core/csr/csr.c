/* Converts COO to CSR. A counting sort moves the entries to their rows, in the order given. Then each row that is not
 * strictly ascending is sorted by column (stable, rows in parallel) and its repeated entries are summed. A last pass
 * closes the gaps that this leaves. No step needs memory in proportion to the columns. */
#include "core/csr/csr.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/size.h"

void wlmi_csr_host_release(wlmi_csr_host *csr) {
  wlmi_free(csr->rowptr);
  wlmi_free(csr->colind);
  wlmi_free(csr->values);
  wlmi_free(csr->wide);
  wlmi_free(csr->shares);
  *csr = (wlmi_csr_host){0};
}

static wlm_status check_shape(int64_t rows, int64_t cols, int64_t nnz) {
  if (rows < 0 || cols < 0 || nnz < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "a matrix of %lld x %lld with %lld entries: sizes must be >= 0",
                     (long long)rows, (long long)cols, (long long)nnz);
  if (cols > INT32_MAX)
    return wlmi_fail(WLM_ERR_OVERFLOW, "%lld columns: column indices are 32-bit, at most %d columns", (long long)cols,
                     INT32_MAX);
  if (!wlmi_is_size(rows)) return wlmi_fail(WLM_ERR_OVERFLOW, "%lld rows do not fit in memory", (long long)rows);
  return WLM_OK;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Counts into rowptr[row + 1], so that the prefix sum is rowptr itself. */
static wlm_status count_rows(wlmi_csr_host *csr, const int32_t *row, const int32_t *col) {
  memset(csr->rowptr, 0, (size_t)(csr->rows + 1) * sizeof *csr->rowptr);
  for (int64_t i = 0; i < csr->nnz; i++) {
    if (row[i] < 0 || row[i] >= csr->rows || col[i] < 0 || col[i] >= csr->cols)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "entry %lld is at (%d, %d), outside a %lld x %lld matrix (0-based)",
                       (long long)i, row[i], col[i], (long long)csr->rows, (long long)csr->cols);
    csr->rowptr[row[i] + 1]++;
  }
  for (int64_t r = 0; r < csr->rows; r++) csr->rowptr[r + 1] += csr->rowptr[r];
  return WLM_OK;
}

/* Moves each rowptr[r] to the end of row r while it fills, and back afterwards. */
static void scatter(wlmi_csr_host *csr, const int32_t *row, const int32_t *col, const float *value) {
  for (int64_t i = 0; i < csr->nnz; i++) {
    int64_t at = csr->rowptr[row[i]]++;
    csr->colind[at] = col[i];
    if (value) csr->values[at] = value[i];
  }
  memmove(csr->rowptr + 1, csr->rowptr, (size_t)csr->rows * sizeof *csr->rowptr);
  csr->rowptr[0] = 0;
}

static int ascends(const int32_t *col, int64_t count) {
  for (int64_t i = 1; i < count; i++)
    if (col[i - 1] >= col[i]) return 0;
  return 1;
}

/* Sorts one row; `pair` has room for twice the row. */
static void sort_row(int32_t *col, float *value, int64_t count, uint64_t *pair) {
  for (int64_t i = 0; i < count; i++) pair[i] = wlmi_row_entry(col[i], value ? bits_of(value[i]) : 0);
  wlmi_sort_entries(pair, pair + count, count);
  for (int64_t i = 0; i < count; i++) {
    col[i] = wlmi_entry_column(pair[i]);
    if (value) value[i] = float_of(wlmi_entry_payload(pair[i]));
  }
}

/* Sorts every row that needs it; *repeated counts the entries that have the coordinates of an earlier one. */
static wlm_status sort_rows(wlmi_csr_host *csr, int64_t *repeated) {
  int64_t longest = 0, repeats = 0;
  int failed = 0;
  for (int64_t r = 0; r < csr->rows; r++) {
    int64_t count = csr->rowptr[r + 1] - csr->rowptr[r];
    if (count > longest && !ascends(csr->colind + csr->rowptr[r], count)) longest = count;
  }
  *repeated = 0;
  if (!longest) return WLM_OK;
#pragma omp parallel reduction(+ : repeats, failed)
  {
    uint64_t *pair = wlmi_alloc_zero((size_t)longest, 2 * sizeof *pair);
    failed += !pair;
#pragma omp for schedule(dynamic, 256)
    for (int64_t r = 0; r < csr->rows; r++) {
      int64_t start = csr->rowptr[r], count = csr->rowptr[r + 1] - start;
      int32_t *col = csr->colind + start;
      if (!pair || ascends(col, count)) continue;
      sort_row(col, csr->values ? csr->values + start : NULL, count, pair);
      for (int64_t i = 1; i < count; i++) repeats += col[i - 1] == col[i];
    }
    wlmi_free(pair);
  }
  *repeated = repeats;
  return failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "sorting rows of %lld entries", (long long)longest) : WLM_OK;
}

/* Sums entries with equal coordinates; they are neighbours because rows are sorted. Works in place from the front. */
static wlm_status sum_repeated(wlmi_csr_host *csr) {
  int64_t from = 0, to = 0;
  for (int64_t r = 0; r < csr->rows; r++) {
    for (int64_t end = csr->rowptr[r + 1]; from < end; to++) {
      int32_t col = csr->colind[from];
      double sum = 0;
      for (; from < end && csr->colind[from] == col; from++) sum += (double)csr->values[from];
      csr->colind[to] = col;
      csr->values[to] = (float)sum;
      if (!isfinite(csr->values[to]) && isfinite(sum))
        return wlmi_fail(WLM_ERR_OVERFLOW,
                         "the entries at (%lld, %d), counted from 0, sum to %g, which float does not hold; scale the "
                         "values",
                         (long long)r, col, sum);
    }
    csr->rowptr[r + 1] = to;
  }
  csr->nnz = to;
  return WLM_OK;
}

static wlm_status give_ones(wlmi_csr_host *csr) {
  wlm_status status = wlmi_alloc_array(csr->nnz, sizeof(float), "values", (void **)&csr->values);
  for (int64_t i = 0; status == WLM_OK && i < csr->nnz; i++) csr->values[i] = 1.0f;
  return status;
}

wlm_status wlmi_csr_from_coo(int64_t rows, int64_t cols, int64_t count, const int32_t *row, const int32_t *col,
                             const float *value, wlmi_csr_host *out) {
  wlmi_csr_host csr = {.rows = rows, .cols = cols, .nnz = count};
  wlm_status status;
  int64_t repeated;
  *out = (wlmi_csr_host){0};
  WLM_TRY(check_shape(rows, cols, count));
  WLM_TRY(wlmi_alloc_array(rows + 1, sizeof *csr.rowptr, "rowptr", (void **)&csr.rowptr));
  WLM_TRY(count_rows(&csr, row, col));
  WLM_TRY(wlmi_alloc_array(count, sizeof *csr.colind, "colind", (void **)&csr.colind));
  if (value) WLM_TRY(wlmi_alloc_array(count, sizeof *csr.values, "values", (void **)&csr.values));
  scatter(&csr, row, col, value);
  WLM_TRY(sort_rows(&csr, &repeated));
  if (repeated) {
    if (!csr.values) WLM_TRY(give_ones(&csr));
    WLM_TRY(sum_repeated(&csr));
  }
  *out = csr;
  return WLM_OK;
done:
  wlmi_csr_host_release(&csr);
  return status;
}

/* ---- entries that a reader collects ---- */

enum { FIRST = 1 << 16 }; /* entries */

static wlm_status grow(wlmi_entries *e, int64_t most) {
  int64_t capacity = e->capacity ? 2 * e->capacity : FIRST;
  if (capacity > most) capacity = most;
  const size_t bytes = (size_t)capacity * 4;
  void *row = wlmi_realloc(e->row, bytes);
  if (row) e->row = row;
  void *col = wlmi_realloc(e->col, bytes);
  if (col) e->col = col;
  void *value = e->has_values ? wlmi_realloc(e->value, bytes) : NULL;
  if (value) e->value = value;
  if (!row || !col || (!value && e->has_values))
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "no memory for %lld entries", (long long)capacity);
  e->capacity = capacity;
  return WLM_OK;
}

wlm_status wlmi_entries_add(wlmi_entries *e, int64_t most, int64_t row, int64_t col, float value) {
  if (e->count == e->capacity) WLM_CHECK(grow(e, most));
  e->row[e->count] = (int32_t)row;
  e->col[e->count] = (int32_t)col;
  if (e->value) e->value[e->count] = value;
  e->count++;
  return WLM_OK;
}

wlm_status wlmi_entries_to_csr(wlmi_entries *e, const char *path, int64_t rows, int64_t cols, wlmi_csr_host *out) {
  const wlm_status status = wlmi_csr_from_coo(rows, cols, e->count, e->row, e->col, e->value, out);
  wlmi_entries_release(e);
  return status == WLM_OK ? status : wlmi_fail_in(status, "%s", path);
}

void wlmi_entries_release(wlmi_entries *e) {
  wlmi_free(e->row);
  wlmi_free(e->col);
  wlmi_free(e->value);
  *e = (wlmi_entries){0};
}

/* ---- sorting the entries of a row ---- */

/* Bottom-up merge sort over runs that insertion sort makes. Most rows are short and never leave the first step; runs
 * that already follow one another are not merged, so a row in order costs one pass. */

enum { RUN = 16 };

static void insertion_sort(uint64_t *entries, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    uint64_t entry = entries[i];
    int64_t at = i;
    for (; at > 0 && entries[at - 1] >> 32 > entry >> 32; at--) entries[at] = entries[at - 1];
    entries[at] = entry;
  }
}

/* Merges the neighbours from[0, middle) and from[middle, end) into `to`. */
static void merge(const uint64_t *from, int64_t middle, int64_t end, uint64_t *to) {
  int64_t left = 0, right = middle;
  if (from[middle - 1] >> 32 <= from[middle] >> 32) {
    memcpy(to, from, (size_t)end * sizeof *to);
    return;
  }
  while (left < middle && right < end) *to++ = from[right] >> 32 < from[left] >> 32 ? from[right++] : from[left++];
  memcpy(to, from + left, (size_t)(middle - left) * sizeof *to);
  memcpy(to + (middle - left), from + right, (size_t)(end - right) * sizeof *to);
}

void wlmi_sort_entries(uint64_t *entries, uint64_t *scratch, int64_t count) {
  uint64_t *from = entries, *to = scratch;
  for (int64_t i = 0; i < count; i += RUN) insertion_sort(entries + i, count - i < RUN ? count - i : RUN);
  for (int64_t run = RUN; run < count; run *= 2) {
    for (int64_t i = 0; i < count; i += 2 * run) {
      int64_t end = count - i < 2 * run ? count - i : 2 * run;
      if (end > run)
        merge(from + i, run, end, to + i);
      else
        memcpy(to + i, from + i, (size_t)end * sizeof *to);
    }
    uint64_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != entries) memcpy(entries, from, (size_t)count * sizeof *entries);
}
