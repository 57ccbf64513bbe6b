/* One pass over rowptr gives everything: counts, the sum of squared deviations (the mean is known before, it is
 * nnz / rows), the hash, and a histogram of row lengths from which the share of the longest rows follows without
 * sorting them. The histogram's classes are single lengths below 4,096 and then 2,048 to an octave; rows of one
 * class count with their class's mean, so top_share is exact for short rows and within 1/2,048 always. */
#include "csr/stats.h"

#include <math.h>

#include "common/hash.h"
#include "common/memory.h"

enum { CHUNK = 1024, CLASS_BITS = 11, CLASSES = (64 - CLASS_BITS + 1) << CLASS_BITS };

typedef struct length_class {
  int64_t rows, nnz;
} length_class;

/* Lengths ascend with their classes. */
static int class_of(int64_t length) {
  int shift = 0;
  while (length >> shift >= 2 << CLASS_BITS) shift++;
  return (shift << CLASS_BITS) + (int)(length >> shift);
}

static double top_share(const length_class *classes, int64_t rows, int64_t nnz) {
  int64_t wanted = rows / 100 > 0 ? rows / 100 : 1;
  double taken = 0;
  for (int c = CLASSES - 1; c >= 0 && wanted > 0; c--) {
    const length_class *class = &classes[c];
    if (!class->rows) continue;
    int64_t take = class->rows < wanted ? class->rows : wanted;
    taken += (double)take * ((double)class->nnz / (double)class->rows);
    wanted -= take;
  }
  return nnz ? taken / (double)nnz : 0.0;
}

static int64_t offset_at(const void *rowptr, wlm_index type, int64_t i) {
  return type == WLM_I32 ? ((const int32_t *)rowptr)[i] : ((const int64_t *)rowptr)[i];
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

/* The pass: rowptr by chunks, widened to int64 for the hash, each row counted as it goes by. */
static wlm_status read_rowptr(const void *rowptr, wlm_index type, wlm_stats *s, length_class *classes,
                              wlmi_hasher *hasher, double *squares) {
  int64_t chunk[CHUNK];
  int64_t previous = 0;
  for (int64_t i = 0, size; i <= s->rows; i += size) {
    size = s->rows + 1 - i < CHUNK ? s->rows + 1 - i : CHUNK;
    for (int64_t k = 0; k < size; k++) {
      int64_t offset = offset_at(rowptr, type, i + k);
      chunk[k] = offset;
      if (i + k == 0) {
        if (offset)
          return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "rowptr starts at %lld, must start at 0", (long long)offset);
        continue;
      }
      if (offset < previous)
        return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "rowptr falls from %lld to %lld at row %lld", (long long)previous,
                         (long long)offset, (long long)(i + k - 1));
      count_row(s, classes, offset - previous, squares);
      previous = offset;
    }
    wlmi_hasher_add_int64(hasher, chunk, size);
  }
  if (previous != s->nnz)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "rowptr ends at %lld after row %lld, must end at nnz = %lld",
                     (long long)previous, (long long)s->rows - 1, (long long)s->nnz);
  return WLM_OK;
}

static wlm_status check_sample(const int64_t *sample, const wlm_stats *s) {
  for (int64_t k = 0; k < wlmi_stats_sample_count(s->nnz); k++)
    if (sample[k] < 0 || sample[k] >= s->cols)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "colind[%lld] is %lld, must be 0 to %lld (0-based)",
                       (long long)wlmi_stats_sample_position(s->nnz, k), (long long)sample[k], (long long)s->cols - 1);
  return WLM_OK;
}

int64_t wlmi_stats_sample_count(int64_t nnz) { return nnz < WLM_STATS_SAMPLES ? nnz : WLM_STATS_SAMPLES; }

/* floor(k * nnz / count) without the product, which may not fit. */
int64_t wlmi_stats_sample_position(int64_t nnz, int64_t k) {
  int64_t count = wlmi_stats_sample_count(nnz);
  return nnz / count * k + nnz % count * k / count;
}

wlm_status wlmi_stats_compute_sampled(const void *rowptr, wlm_index rowptr_type, int64_t rows, int64_t cols,
                                      int64_t nnz, const int64_t *sample, wlm_stats *out) {
  wlm_stats s = WLM_STATS_INIT;
  wlm_status status;
  wlmi_hasher *hasher = NULL;
  length_class *classes = NULL;
  double squares = 0;
  if (rows < 0 || cols < 0 || nnz < 0 || !rowptr || (nnz && !sample))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "a matrix of %lld x %lld with %lld entries%s", (long long)rows,
                     (long long)cols, (long long)nnz, rowptr ? ": sizes must be >= 0" : ": rowptr or colind is NULL");
  s.rows = rows;
  s.cols = cols;
  s.nnz = nnz;
  s.mean = rows ? (double)nnz / (double)rows : 0.0;
  classes = wlmi_alloc_zero(CLASSES, sizeof *classes);
  hasher = wlmi_hasher_create();
  if (!classes || !hasher) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "histogram of row lengths"));
  wlmi_hasher_add_int64(hasher, (const int64_t[]){rows, cols, nnz}, 3);
  WLM_TRY(read_rowptr(rowptr, rowptr_type, &s, classes, hasher, &squares));
  WLM_TRY(check_sample(sample, &s));
  wlmi_hasher_add_int64(hasher, sample, wlmi_stats_sample_count(nnz));
  if (nnz) s.cv = sqrt(squares / (double)rows) / s.mean;
  s.top_share = top_share(classes, rows, nnz);
  wlmi_hash hash = wlmi_hasher_result(hasher);
  s.fingerprint[0] = hash.high;
  s.fingerprint[1] = hash.low;
  *out = s;
done:
  wlmi_hasher_destroy(hasher);
  wlmi_free(classes);
  return status;
}

wlm_status wlmi_stats_compute(const void *rowptr, wlm_index rowptr_type, int64_t rows, int64_t cols, int64_t nnz,
                              const void *colind, wlm_index colind_type, wlm_stats *out) {
  int64_t sample[WLM_STATS_SAMPLES];
  for (int64_t k = 0; colind && k < wlmi_stats_sample_count(nnz); k++)
    sample[k] = offset_at(colind, colind_type, wlmi_stats_sample_position(nnz, k));
  return wlmi_stats_compute_sampled(rowptr, rowptr_type, rows, cols, nnz, colind ? sample : NULL, out);
}
