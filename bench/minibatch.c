/* Suite minibatch: each step of mini-batch training multiplies by a new matrix. The suite samples BATCHES batches of a
 * graph and uploads their blocks in advance. A sample is the host's wall time of one run over all blocks, back to back
 * on one stream, from the first call until the stream is idle, divided by the number of blocks. It includes everything
 * that a method does for a block (choosing a kernel, descriptors, buffer sizes). As in training, a forward run begins
 * with the outermost layer of a batch, a transposed run with the layer of the seeds.
 *
 * Runs of all methods are interleaved. The reported time is the median; for cuSPARSE it is that of its fastest
 * algorithm. Every method is checked on the first batch before it is timed. */
#include <math.h>
#include <stdio.h>

#include "bench/blocks.h"
#include "bench/comparison.h"
#include "bench/results_file.h"
#include "core/base/memory.h"
#include "core/problem/sampling.h"
#include "runtime/context.h"
#include "tuner/timing.h"
#include "tuner/verify.h"

enum { BATCHES = 34, METHODS = 1 + WLMI_CUSPARSE_ALGORITHMS, WARM_UPS = 2, ALL_LAYERS = -1, LAYERS = 3 };
enum { NAN_BYTE = 0xFF, LARGE_BYTE = 0x7E, BASELINE_LEEWAY = 16 };
static const wlmi_neighbour_options sampling = {1024, LAYERS, {15, 10, 5}};

struct round {
  const wlmi_bench_case *bench;
  wlmi_device *device;
  wlmi_bench_stream stream;
  wlmi_block_set set;
  float *b, *c;                       /* most_cols x n */
  wlmi_block_method methods[METHODS]; /* ours, then the baselines */
  wlmi_method results[METHODS];       /* of them: error, and time of one of all blocks */
  double seconds[METHODS][LAYERS];    /* of one block of a layer */
  int count;
};

/* ---- setting up -------------------------------------------------------------------------------------- */

static wlm_status make_operands(struct round *r) {
  const int64_t count = r->set.most_cols * r->bench->n;
  const size_t size = (size_t)count * sizeof(float);
  float *b = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(count, sizeof *b, "B", (void **)&b));
#pragma omp parallel for
  for (int64_t i = 0; i < count; i++)
    b[i] = (float)(wlmi_sample_hash(r->bench->seed, i) >> 40) * 0x1p-23f - 1.0f; /* uniform in [-1, 1) */
  WLM_TRY(r->device->ops->allocate(r->device, size, (void **)&r->b));
  WLM_TRY(r->device->ops->allocate(r->device, size, (void **)&r->c));
  status = r->device->ops->copy_in(r->device, r->b, b, size);
done:
  wlmi_free(b);
  return status;
}

/* Adds the method that was set up last, with this status. */
static void enter(struct round *r, wlm_status status) {
  wlmi_method *result = &r->results[r->count];
  snprintf(result->name, sizeof result->name, "%s", r->methods[r->count++].name);
  if (status != WLM_OK) wlmi_method_give_up(result, status);
}

static wlm_status set_up(struct round *r) {
  WLM_CHECK(wlmi_bench_stream_open(r->device, &r->stream));
  WLM_CHECK(wlmi_block_set_create(r->bench->context, r->bench->csr, &sampling, BATCHES, r->bench->seed, &r->set));
  WLM_CHECK(make_operands(r));
  r->methods[0] = wlmi_block_warploom(r->bench->context);
  enter(r, WLM_OK);
  if (r->device->info.limits.target == WLMI_TARGET_HOST)
    enter(r, wlmi_block_openmp(&r->methods[r->count]));
  else
    for (int algorithm = 0; algorithm < WLMI_CUSPARSE_ALGORITHMS; algorithm++)
      enter(r, wlmi_block_cusparse(&r->stream, algorithm, &r->methods[r->count]));
  return WLM_OK;
}

static void tear_down(struct round *r) {
  for (int i = 0; i < r->count; i++) {
    wlmi_block_method_release(&r->methods[i]);
    wlmi_method_release(&r->results[i]);
  }
  r->device->ops->release(r->device, r->b);
  r->device->ops->release(r->device, r->c);
  wlmi_block_set_release(&r->set);
  wlmi_bench_stream_close(&r->stream);
}

/* ---- checking ------------------------------------------------------------------------------------------ */

static wlmi_block_product product_of(const struct round *r, int transpose, int64_t block) {
  return (wlmi_block_product){.a = wlmi_matrix_csr(r->set.uploads[block].matrix),
                              .n = r->bench->n,
                              .transpose = transpose,
                              .b = r->b,
                              .c = r->c,
                              .stream = r->stream.handle};
}

/* Runs a method once and compares the result with float64. Before, C is full of NaN; for a baseline of large finite
 * numbers, because it may multiply the old C by 0. A baseline has 16 times the tolerance, because it may round more
 * often. */
static wlm_status check(struct round *r, int i, const wlmi_operands *operands, wlmi_verifier *verifier,
                        const wlmi_block_product *product) {
  const wlmi_block_method *method = &r->methods[i];
  const wlmi_device_ops *ops = r->device->ops;
  const wlmi_buffer *c = &operands->output[0].buffer;
  double error = 0;
  wlmi_verifier_set_leeway(verifier, method->is_ours ? 1 : BASELINE_LEEWAY);
  WLM_CHECK(ops->fill(r->device, NULL, c->memory, method->is_ours ? NAN_BYTE : LARGE_BYTE, c->size));
  WLM_CHECK(ops->synchronize(r->device, NULL)); /* fill uses another stream */
  WLM_CHECK(method->multiply(method->user, product));
  WLM_CHECK(ops->synchronize(r->device, r->stream.handle));
  const wlm_status status = wlmi_verify_result(verifier, &error);
  r->results[i].max_rel_err = fmax(r->results[i].max_rel_err, error);
  return status;
}

/* Checks all methods on one block; if ours fails, the case fails. */
static wlm_status check_all(struct round *r, int transpose, int64_t block) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlmi_operands operands = {0};
  wlmi_verifier *verifier = NULL;
  wlm_status status;
  problem.n = r->bench->n;
  problem.transpose = transpose;
  WLM_TRY(
      wlmi_operands_create(r->bench->context, r->set.uploads[block].matrix, &problem, NULL, r->bench->seed, &operands));
  WLM_TRY(wlmi_verifier_create(&operands, r->bench->seed, &verifier));
  wlmi_block_product product = product_of(r, transpose, block);
  product.b = wlmi_operands_find(&operands, "b")->buffer.memory;
  product.c = operands.output[0].buffer.memory;
  for (int i = 0; i < r->count; i++) {
    if (!r->results[i].failure) status = check(r, i, &operands, verifier, &product);
    if (status == WLM_OK) continue;
    if (r->methods[i].is_ours) goto done;
    wlmi_method_give_up(&r->results[i], status);
    status = WLM_OK;
  }
done:
  wlmi_verifier_destroy(verifier);
  wlmi_operands_release(&operands);
  return status;
}

/* ---- timing --------------------------------------------------------------------------------------------- */

/* Seconds per block, from one run over all blocks of a layer, or of all layers. */
static wlm_status run_blocks(const struct round *r, const wlmi_block_method *method, int transpose, int layer,
                             double *seconds) {
  const int layers = r->set.layers;
  int64_t blocks = 0;
  const double start = wlmi_seconds();
  for (int64_t batch = 0; batch < r->set.count; batch += layers)
    for (int i = 0; i < layers; i++) {
      const int at = transpose ? i : layers - 1 - i;
      if (layer != ALL_LAYERS && layer != at) continue;
      const wlmi_block_product product = product_of(r, transpose, batch + at);
      WLM_CHECK(method->multiply(method->user, &product));
      blocks++;
    }
  WLM_CHECK(r->device->ops->synchronize(r->device, r->stream.handle));
  *seconds = (wlmi_seconds() - start) / (double)blocks;
  return WLM_OK;
}

/* Times those that take part, interleaved; `layer` as above. */
static wlm_status time_all(struct round *r, int transpose, int layer) {
  const int samples = r->bench->samples;
  double *seconds = NULL, ignored;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array((int64_t)METHODS * samples, sizeof *seconds, "samples", (void **)&seconds));
  for (int s = -WARM_UPS; s < samples; s++)
    for (int i = 0; i < r->count; i++) {
      if (r->results[i].failure) continue;
      status = run_blocks(r, &r->methods[i], transpose, layer, s < 0 ? &ignored : &seconds[i * samples + s]);
      if (status == WLM_OK) continue;
      if (r->methods[i].is_ours) goto done;
      wlmi_method_give_up(&r->results[i], status);
    }
  for (int i = 0; i < r->count; i++) {
    wlmi_method *result = &r->results[i];
    if (result->failure) continue;
    wlmi_timing_summarise(seconds + (int64_t)i * samples, samples,
                          layer == ALL_LAYERS ? &result->seconds : &r->seconds[i][layer],
                          layer == ALL_LAYERS ? &result->spread : &ignored);
  }
  status = WLM_OK;
done:
  wlmi_free(seconds);
  return status;
}

/* ---- what is written --------------------------------------------------------------------------------------- */

static double us_of_layer(const struct round *r, const wlmi_method *result, int layer) {
  return result && !result->failure ? 1e6 * r->seconds[result - r->results][layer] : NAN;
}

static void write_means(const struct wlmi_block_means *means, wlmi_text *line) {
  wlmi_json_put(line, "rows_mean=%.1f cols_mean=%.1f nnz_mean=%.1f", means->rows, means->cols, means->nnz);
}

static void write_layers(const struct round *r, const wlmi_method *baseline, wlmi_text *line) {
  wlmi_json_open(line, "layers", '[');
  for (int layer = 0; layer < r->set.layers; layer++) {
    wlmi_json_open(line, NULL, '{');
    write_means(&r->set.means[layer], line);
    wlmi_json_put(line, "us=%.3f baseline_us=%.3f", us_of_layer(r, r->results, layer), us_of_layer(r, baseline, layer));
    wlmi_json_close(line, '}');
  }
  wlmi_json_close(line, ']');
}

static void write_line(const struct round *r, const char *direction, wlmi_text *line) {
  const wlmi_method *ours = r->results, *baseline = wlmi_methods_quickest(ours + 1, r->count - 1);
  const int on_host = r->device->info.limits.target == WLMI_TARGET_HOST;
  wlmi_results_begin(line, r->bench);
  wlmi_json_put(line,
                "graph=%s n=%jd direction=%s us=%.3f cusparse_us=%.3f openmp_us=%.3f baseline=%s spread=%.4f "
                "baseline_spread=%.4f blocks=%jd",
                r->bench->matrix, r->bench->n, direction, wlmi_method_us(ours),
                on_host ? (double)NAN : wlmi_method_us(baseline), on_host ? wlmi_method_us(baseline) : (double)NAN,
                baseline ? baseline->name : "", ours->spread, baseline ? baseline->spread : (double)NAN, r->set.count);
  write_means(&r->set.all, line);
  write_layers(r, baseline, line);
  wlmi_json_real(line, "max_rel_err", "%.3g", ours->max_rel_err);
  wlmi_results_put_methods(line, "baselines", "failed", ours + 1, r->count - 1);
  wlmi_results_end(line);
}

static wlm_status run(const wlmi_bench_case *bench, wlmi_text *line) {
  static const char *const directions[] = {"forward", "transposed"};
  struct round r = {.bench = bench, .device = wlmi_context_device(bench->context)};
  wlm_status status;
  WLM_TRY(set_up(&r));
  for (int transpose = 0; transpose < 2; transpose++) {
    for (int i = 0; i < r.count; i++) {
      r.results[i].max_rel_err = 0;
      if (!r.methods[i].user) continue;
      wlmi_method_free_failure(r.results[i].failure); /* a method may fail in one direction only */
      r.results[i].failure = NULL;
    }
    for (int layer = 0; layer < r.set.layers; layer++) WLM_TRY(check_all(&r, transpose, layer));
    for (int layer = ALL_LAYERS; layer < r.set.layers; layer++) WLM_TRY(time_all(&r, transpose, layer));
    write_line(&r, directions[transpose], line);
  }
done:
  tear_down(&r);
  return status;
}

const wlmi_bench_suite wlmi_suite_minibatch = {
    .name = "minibatch",
    .help = "blocks of a neighbour sampler, each used once, forward and transposed",
    .shown = "direction us spread cusparse_us openmp_us baseline max_rel_err",
    .run = run,
    .samples = 11,
    .stays_on_host = 1,
};
