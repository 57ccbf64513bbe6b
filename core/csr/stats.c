/* One pass over rowptr gives the stats: counts, the sum of squared deviations (the mean is known before, it is
 * nnz / rows), and a histogram of row lengths from which the share of the longest rows follows without sorting them.
 * A second pass gives the fingerprint. The histogram's classes are single lengths below 4,096 and then 2,048 to an
 * octave; rows of one class count with their class's mean, so top_share is exact for short rows and within 1/2,048
 * always. */
#include "core/csr/stats.h"

#include <math.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/csr/validate.h"
#include "core/problem/element.h"
#include "core/problem/size.h"

enum { CHUNK = 1024, CLASS_BITS = 11 };

typedef struct length_class {
  int64_t rows, nnz;
} length_class;

/* The histogram class of a row length; classes ascend with the length. */
static int class_of(int64_t length) {
  int shift = 0;
  while (length >> shift >= 2 << CLASS_BITS) shift++;
  return (shift << CLASS_BITS) + (int)(length >> shift);
}

static double top_share(const length_class *classes, int64_t longest, int64_t rows, int64_t nnz) {
  int64_t wanted = rows / 100 > 0 ? rows / 100 : 1;
  double taken = 0;
  for (int c = class_of(longest); c >= 0 && wanted > 0; c--) {
    const length_class *class = &classes[c];
    if (!class->rows) continue;
    int64_t take = class->rows < wanted ? class->rows : wanted;
    taken += (double)take * ((double)class->nnz / (double)class->rows);
    wanted -= take;
  }
  return nnz ? taken / (double)nnz : 0.0;
}

static void count_row(wlm_stats *s, length_class *classes, int64_t length, double *squares) {
  double deviation = (double)length - s->mean;
  length_class *class = &classes[class_of(length)];
  class->rows++;
  class->nnz += length;
  *squares += deviation * deviation;
  if (length > s->longest) s->longest = length;
  s->empty_rows += length == 0;
  s->rows_le_4 += length <= 4;
  s->rows_le_16 += length <= 16;
}

wlm_status wlmi_rowptr_check(const wlmi_rowptr_ends *e, int64_t rows, int64_t nnz) {
  if (e->first != e->base)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "rowptr starts at %lld, must start at %lld%s", (long long)e->first,
                     (long long)e->base, wlmi_first_hint(e->type, e->base, e->first));
  if (e->bad_row >= 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "rowptr falls from %lld to %lld at row %lld%s", (long long)e->from,
                     (long long)e->to, (long long)e->bad_row, wlmi_offset_hint(e->type, e->to ? e->from : 0));
  if (e->last - e->base != nnz)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "rowptr ends at %lld after row %lld, must end at nnz%s = %lld%s",
                     (long long)e->last, (long long)rows - 1, e->base ? " + 1" : "", (long long)(nnz + e->base),
                     wlmi_offset_hint(e->type, e->last));
  return WLM_OK;
}

static wlm_status count_rows(const void *rowptr, wlm_index type, int64_t base, wlm_stats *s, length_class *classes,
                             double *squares) {
  wlmi_rowptr_ends ends = {.type = type, .base = base, .first = wlmi_index_get(type, rowptr, 0), .bad_row = -1};
  ends.last = ends.first;
  for (int64_t row = 0; ends.first == base && ends.bad_row < 0 && row < s->rows; row++) {
    ends.from = ends.last;
    ends.to = ends.last = wlmi_index_get(type, rowptr, row + 1);
    if (ends.to < ends.from)
      ends.bad_row = row;
    else if (ends.to - base <= s->nnz) /* a larger offset has no class; the check below refuses it */
      count_row(s, classes, ends.to - ends.from, squares);
  }
  return wlmi_rowptr_check(&ends, s->rows, s->nnz);
}

static wlm_status check_sample(const int64_t *sample, int64_t base, const wlm_stats *s) {
  for (int64_t k = 0; k < wlmi_stats_sample_count(s->nnz); k++)
    if (sample[k] < 0 || sample[k] >= s->cols)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "colind[%lld] is %lld, must be %lld to %lld (%lld-based)",
                       (long long)wlmi_stats_sample_position(s->nnz, k), (long long)(sample[k] + base), (long long)base,
                       (long long)(s->cols - 1 + base), (long long)base);
  return WLM_OK;
}

int64_t wlmi_stats_sample_count(int64_t nnz) { return nnz < WLMI_STATS_SAMPLES ? nnz : WLMI_STATS_SAMPLES; }

/* floor(k * nnz / count) without the product, which may not fit. */
int64_t wlmi_stats_sample_position(int64_t nnz, int64_t k) {
  int64_t count = wlmi_stats_sample_count(nnz);
  return nnz / count * k + nnz % count * k / count;
}

static wlm_status check_sizes(const void *rowptr, int64_t rows, int64_t cols, int64_t nnz, int has_colind) {
  if (rows >= 0 && cols >= 0 && nnz >= 0 && rowptr && (!nnz || has_colind)) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "a matrix of %lld x %lld with %lld entries%s", (long long)rows,
                   (long long)cols, (long long)nnz, rowptr ? ": sizes must be >= 0" : ": rowptr or colind is NULL");
}

wlm_status wlmi_stats_rows(const void *rowptr, wlm_index rowptr_type, int64_t base, int64_t rows, int64_t cols,
                           int64_t nnz, wlm_stats *out) {
  wlm_stats s = WLM_STATS_INIT;
  length_class *classes = NULL;
  double squares = 0;
  wlm_status status;
  WLM_TRY(check_sizes(rowptr, rows, cols, nnz, 1));
  s.rows = rows;
  s.cols = cols;
  s.nnz = nnz;
  s.mean = rows ? (double)nnz / (double)rows : 0.0;
  classes = wlmi_alloc_zero((size_t)class_of(nnz) + 1, sizeof *classes);
  if (!classes) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "histogram of row lengths"));
  WLM_TRY(count_rows(rowptr, rowptr_type, base, &s, classes, &squares));
  if (nnz) s.cv = sqrt(squares / (double)rows) / s.mean;
  s.top_share = top_share(classes, s.longest, rows, nnz);
  *out = s;
done:
  wlmi_free(classes);
  return status;
}

wlm_status wlmi_stats_fingerprint(const void *rowptr, wlm_index rowptr_type, int64_t base, const int64_t *sample,
                                  wlm_stats *s) {
  int64_t chunk[CHUNK];
  WLM_CHECK(check_sample(sample, base, s));
  wlmi_hasher *hasher = wlmi_hasher_create();
  if (!hasher) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "fingerprint");
  wlmi_hasher_add_int64(hasher, (const int64_t[]){s->rows, s->cols, s->nnz}, 3);
  for (int64_t i = 0, size; i <= s->rows; i += size) {
    size = s->rows + 1 - i < CHUNK ? s->rows + 1 - i : CHUNK;
    for (int64_t k = 0; k < size; k++) chunk[k] = wlmi_index_get(rowptr_type, rowptr, i + k) - base;
    wlmi_hasher_add_int64(hasher, chunk, size);
  }
  wlmi_hasher_add_int64(hasher, sample, wlmi_stats_sample_count(s->nnz));
  const wlmi_hash hash = wlmi_hasher_result(hasher);
  wlmi_hasher_destroy(hasher);
  s->fingerprint[0] = hash.high;
  s->fingerprint[1] = hash.low;
  return WLM_OK;
}

static int64_t multiplied(int64_t size, int64_t times) {
  return times && size > WLMI_MOST_SIZE / times ? WLMI_MOST_SIZE : size * times;
}

void wlmi_stats_repeat(wlm_stats *s, int64_t times) {
  int64_t *const counts[] = {&s->rows, &s->cols, &s->nnz, &s->empty_rows, &s->rows_le_4, &s->rows_le_16};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) *counts[i] = multiplied(*counts[i], times);
  s->fingerprint[0] = s->fingerprint[1] = 0;
}

/* colind is read once rowptr has shown that nnz is right. */
wlm_status wlmi_stats_compute(const void *rowptr, wlm_index rowptr_type, int64_t rows, int64_t cols, int64_t nnz,
                              const void *colind, wlm_index colind_type, wlm_stats *out) {
  int64_t sample[WLMI_STATS_SAMPLES];
  wlm_stats s;
  WLM_CHECK(check_sizes(rowptr, rows, cols, nnz, colind != NULL));
  WLM_CHECK(wlmi_stats_rows(rowptr, rowptr_type, 0, rows, cols, nnz, &s));
  for (int64_t k = 0; k < wlmi_stats_sample_count(nnz); k++)
    sample[k] = wlmi_index_get(colind_type, colind, wlmi_stats_sample_position(nnz, k));
  WLM_CHECK(wlmi_stats_fingerprint(rowptr, rowptr_type, 0, sample, &s));
  *out = s;
  return WLM_OK;
}
