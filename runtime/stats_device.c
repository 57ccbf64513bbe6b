/* Measures stats with the kernels of templates/programs/stats.cu.in, or on the host with core/csr/stats.c. */
#include "runtime/stats_device.h"

#include <math.h>

#include "core/base/memory.h"
#include "core/csr/stats.h"
#include "runtime/helper.h"
#include "templates/programs/stats.h"

enum { ROWS, SAMPLE };

/* Bins of the histogram, enough for a row that has all non-zeros. */
static int64_t bins_for(int64_t nnz) {
  int64_t bins = WLM_BINS_SINGLE;
  for (int octave = WLM_BINS_SINGLE_BITS; octave < 63 && nnz >> octave; octave++) bins += 1 << WLM_BINS_OCTAVE_BITS;
  return bins;
}

/* Bytes of the scratch that must be 0; behind them is a double for each block. */
static size_t cleared_size(const wlm_csr *csr) {
  return sizeof(struct wlm_stats_work) + (size_t)bins_for(csr->nnz) * sizeof(struct wlm_length_bin);
}

size_t wlmi_stats_scratch_size(const wlm_csr *csr) {
  const size_t rows = cleared_size(csr) + WLM_STATS_MOST_BLOCKS * sizeof(double);
  const size_t sample = WLMI_STATS_SAMPLES * sizeof(int64_t);
  return rows > sample ? rows : sample;
}

/* Blocks of the launch, at most as many as fit on the device at once. */
static int64_t blocks_for(const wlmi_device *device, int64_t rows) {
  const int64_t wanted = wlmi_divide_up(rows, WLM_STATS_THREADS * WLM_STATS_ROWS_EACH);
  int64_t most = 4 * (int64_t)device->info.limits.processors;
  if (most < 1 || most > WLM_STATS_MOST_BLOCKS) most = WLM_STATS_MOST_BLOCKS;
  return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

static wlm_status take(const struct wlm_row_stats *r, const wlm_csr *csr, double mean, wlm_stats *stats) {
  const wlmi_rowptr_ends ends = {.type = csr->rowptr_type,
                                 .base = csr->base,
                                 .first = r->first,
                                 .last = r->last,
                                 .bad_row = r->bad_row,
                                 .from = r->from,
                                 .to = r->to};
  WLM_CHECK(wlmi_rowptr_check(&ends, csr->rows, csr->nnz));
  *stats = (wlm_stats)WLM_STATS_INIT;
  stats->rows = csr->rows;
  stats->cols = csr->cols;
  stats->nnz = csr->nnz;
  stats->longest = r->longest;
  stats->empty_rows = r->empty;
  stats->rows_le_4 = r->le_4;
  stats->rows_le_16 = r->le_16;
  stats->mean = mean;
  stats->cv = csr->nnz ? sqrt(r->squares / (double)csr->rows) / mean : 0.0;
  stats->top_share = csr->nnz ? r->top / (double)csr->nnz : 0.0;
  return WLM_OK;
}

static wlm_status by_kernel(wlmi_device *device, void *const *kernels, const wlm_csr *csr, void *stream, void *scratch,
                            wlm_stats *stats) {
  struct wlm_row_stats result;
  const struct wlm_args args = {.rows = csr->rows,
                                .cols = csr->cols,
                                .nnz = csr->nnz,
                                .rowptr = csr->rowptr,
                                .workspace = scratch,
                                .units = bins_for(csr->nnz),
                                .c = (char *)scratch + cleared_size(csr),
                                .alpha = csr->rows ? (double)csr->nnz / (double)csr->rows : 0.0};
  WLM_CHECK(device->ops->fill(device, stream, scratch, 0, cleared_size(csr)));
  WLM_CHECK(
      wlmi_help_launch(device, kernels[ROWS], blocks_for(device, csr->rows), WLM_STATS_THREADS, 0, &args, stream));
  WLM_CHECK(device->ops->copy_out(device, stream, &result, scratch, sizeof result));
  return take(&result, csr, args.alpha, stats);
}

static wlmi_mirror mirror_of_rowptr(wlm_csr *csr) {
  return (wlmi_mirror){"rowptr", &csr->rowptr, csr->rows + 1, wlmi_index_size(csr->rowptr_type), 0, NULL};
}

static wlm_status by_host(wlmi_device *device, wlm_csr csr, void *stream, wlm_stats *stats) {
  wlmi_mirror rowptr = mirror_of_rowptr(&csr);
  wlm_status status = wlmi_mirror_open(device, stream, &rowptr, 1);
  if (status == WLM_OK)
    status = wlmi_stats_rows(csr.rowptr, csr.rowptr_type, csr.base, csr.rows, csr.cols, csr.nnz, stats);
  return wlmi_mirror_close(device, stream, &rowptr, 1, status);
}

wlm_status wlmi_stats_measure(wlmi_device *device, void *const *kernels, const wlm_csr *csr, void *stream,
                              void *scratch, wlm_stats *stats) {
  return kernels ? by_kernel(device, kernels, csr, stream, scratch, stats) : by_host(device, *csr, stream, stats);
}

/* ---- the fingerprint -------------------------------------------------------------------------------- */

static wlm_status sample_by_kernel(wlmi_device *device, void *const *kernels, const wlm_csr *csr, void *stream,
                                   void *scratch, int64_t *sample) {
  const int64_t count = wlmi_stats_sample_count(csr->nnz);
  const struct wlm_args args = {.nnz = csr->nnz,
                                .colind = csr->colind,
                                .n = (long long)wlmi_index_size(csr->colind_type),
                                .workspace = scratch,
                                .units = count};
  const int64_t blocks = wlmi_divide_up(count, WLM_STATS_THREADS);
  WLM_CHECK(wlmi_help_launch(device, kernels[SAMPLE], blocks, WLM_STATS_THREADS, 0, &args, stream));
  return device->ops->copy_out(device, stream, sample, scratch, (size_t)count * sizeof *sample);
}

/* If colind is smaller than this many bytes, one copy of all of it is faster than 4,096 copies of one index. */
enum { COPY_WHOLE = 16 << 20 };

static wlm_status sample_by_copies(wlmi_device *device, wlm_csr csr, void *stream, int64_t *sample) {
  const size_t width = wlmi_index_size(csr.colind_type);
  const int whole = (size_t)csr.nnz * width <= COPY_WHOLE;
  wlmi_mirror colind = {"colind", &csr.colind, csr.nnz, width, 0, NULL};
  wlm_status status = whole ? wlmi_mirror_open(device, stream, &colind, 1) : WLM_OK;
  for (int64_t k = 0; status == WLM_OK && k < wlmi_stats_sample_count(csr.nnz); k++) {
    const char *from = (const char *)csr.colind + (size_t)wlmi_stats_sample_position(csr.nnz, k) * width;
    int64_t wide = 0;
    int32_t narrow = 0;
    void *target = width == 8 ? (void *)&wide : (void *)&narrow;
    if (whole)
      __builtin_memcpy(target, from, width);
    else
      status = device->ops->copy_out(device, stream, target, from, width);
    sample[k] = width == 8 ? wide : narrow;
  }
  return wlmi_mirror_close(device, stream, &colind, 1, status);
}

wlm_status wlmi_stats_measure_fingerprint(wlmi_device *device, void *const *kernels, const wlm_csr *csr, void *stream,
                                          void *scratch, wlm_stats *stats) {
  wlm_csr on_host = *csr;
  wlmi_mirror rowptr = mirror_of_rowptr(&on_host);
  int64_t *sample = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(WLMI_STATS_SAMPLES, sizeof *sample, "sample of colind", (void **)&sample));
  WLM_TRY(wlmi_mirror_open(device, stream, &rowptr, 1));
  if (csr->nnz)
    WLM_TRY(kernels ? sample_by_kernel(device, kernels, csr, stream, scratch, sample)
                    : sample_by_copies(device, *csr, stream, sample));
  for (int64_t k = 0; csr->base && k < wlmi_stats_sample_count(csr->nnz); k++) sample[k] -= csr->base;
  status = wlmi_stats_fingerprint(on_host.rowptr, csr->rowptr_type, csr->base, sample, stats);
done:
  wlmi_free(sample);
  return wlmi_mirror_close(device, stream, &rowptr, 1, status);
}

/* ---- of a context --------------------------------------------------------------------------------------- */

typedef wlm_status measure(wlmi_device *device, void *const *kernels, const wlm_csr *csr, void *stream, void *scratch,
                           wlm_stats *stats);

static wlm_status with_help(measure *function, wlm_context *context, const wlm_csr *csr, void *stream,
                            wlm_stats *stats) {
  wlmi_help help;
  wlm_status status = wlmi_help_begin(context, WLMI_HELPER_STATS, csr, 0, stream, wlmi_stats_scratch_size(csr), &help);
  if (status == WLM_OK) status = function(context->device, help.kernels, csr, stream, help.scratch.memory, stats);
  wlmi_help_end(context, stream, &help);
  return status;
}

wlm_status wlmi_matrix_make_stats(wlm_context *context, const wlm_csr *csr, void *stream, wlm_stats *stats) {
  return with_help(wlmi_stats_measure, context, csr, stream, stats);
}

wlm_status wlmi_matrix_add_fingerprint(wlm_context *context, const wlm_csr *csr, void *stream, wlm_stats *stats) {
  return with_help(wlmi_stats_measure_fingerprint, context, csr, stream, stats);
}
