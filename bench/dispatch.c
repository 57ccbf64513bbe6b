/* Suite dispatch: the host's time for the library's calls, on small blocks sampled from the matrix. A sample is the
 * mean of a batch of calls. Between batches the stream is drained, which is not timed, and a batch is so short that the
 * queue of launches never fills. The baseline of a call, if there is one, makes the same launches without the library,
 * one driver call for each kernel; its batches alternate with those of the call.
 *
 *   context_create    wlm_context_create while the device's primary context is active
 *   plan_known        wlm_plan_create and _destroy for a problem whose kernel is loaded
 *   rebind            wlm_plan_rebind to another block
 *   matrix_estimated  wlm_matrix_create and _destroy with estimated stats
 *   matrix_measured   the same with measured stats, which are read back
 *   spmm_new_matrix   wlm_spmm, a new block at every call
 *   execute           wlm_plan_execute */
#include <math.h>

#include "bench/blocks.h"
#include "bench/results_file.h"
#include "bench/suite.h"
#include "core/base/memory.h"
#include "runtime/context.h"
#include "runtime/cuda/device.h"
#include "tuner/timing.h"

enum { BLOCKS = 64, BATCH = 2 * BLOCKS, SAMPLES = 51 };
static const wlmi_neighbour_options sampling = {1024, 1, {15}};

/* Launches of recorded calls, with ready arguments. Memory that they use, such as a workspace, stays allocated until
 * they are repeated. */
struct launches {
  struct launch {
    wlmi_launch launch;
    struct wlm_args args;
  } * list;
  int64_t count, capacity;
};

struct work {
  const wlmi_bench_case *bench;
  wlm_context_options opening; /* as for a user's context */
  wlmi_device *device;
  wlmi_bench_stream stream;
  wlmi_block_set set;
  wlmi_block_method spmm;
  float *b, *c;
  wlm_problem problem;
  wlm_matrix *matrix; /* the first block */
  wlm_plan *plan, *rebound;
  wlm_execute_args call; /* of `execute` */
  void *workspace;
  wlm_context *made; /* by context_create */
  struct launches execute, products;
  int64_t ends[BLOCKS]; /* of each block's launches in `products` */
};

/* ---- bare launches --------------------------------------------------------------------------------------- */

static struct launches *recording;
static const wlmi_device_ops *usual;

static wlm_status record_launch(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                                void *stream) {
  WLM_CHECK(wlmi_grow((void **)&recording->list, recording->count, &recording->capacity, sizeof *recording->list,
                      "launches"));
  recording->list[recording->count++] = (struct launch){*launch, *args};
  return usual->launch(device, launch, args, stream);
}

/* Runs the call and appends each of its launches. Meanwhile the device's table of functions is replaced by a copy with
 * another `launch`. */
static wlm_status record(struct work *w, wlm_status (*call)(struct work *w, int64_t number), int64_t number,
                         struct launches *launches) {
  recording = launches;
  usual = w->device->ops;
  wlmi_device_ops ops = *usual;
  ops.launch = record_launch;
  w->device->ops = &ops;
  wlm_status status = call(w, number);
  w->device->ops = usual;
  return status;
}

/* One driver call for each kernel. */
static wlm_status repeat(const struct work *w, const struct launches *launches, int64_t first, int64_t end) {
  const int on_gpu = w->device->info.limits.target == WLMI_TARGET_CUDA;
  for (int64_t i = first; i < end; i++) {
    const struct launch *bare = &launches->list[i];
    WLM_CHECK((on_gpu ? wlmi_cuda_launch_here : w->device->ops->launch)(w->device, &bare->launch, &bare->args,
                                                                        w->stream.handle));
  }
  return WLM_OK;
}

/* ---- the calls ------------------------------------------------------------------------------------------ */

static const wlm_csr *block_of(const struct work *w, int64_t call) {
  return wlmi_matrix_csr(w->set.uploads[call % BLOCKS].matrix);
}

static wlm_status context_create(struct work *w, int64_t call) {
  (void)call;
  return wlm_context_create(&w->opening, &w->made);
}

static void context_destroy(struct work *w) {
  wlm_context_destroy(w->made);
  w->made = NULL;
}

static wlm_status plan_known(struct work *w, int64_t call) {
  (void)call;
  wlm_plan *plan;
  wlm_status status = wlm_plan_create(w->bench->context, w->matrix, &w->problem, &plan);
  if (status == WLM_OK) wlm_plan_destroy(plan);
  return status;
}

static wlm_status rebind(struct work *w, int64_t call) { return wlm_plan_rebind(w->rebound, block_of(w, call)); }

static wlm_status create_matrix(const struct work *w, int64_t call, wlm_stats_grade grade, wlm_matrix **matrix) {
  wlm_matrix_options options = WLM_MATRIX_OPTIONS_INIT;
  options.grade = grade;
  options.stream = w->stream.handle;
  return wlm_matrix_create(w->bench->context, block_of(w, call), &options, matrix);
}

static wlm_status matrix_estimated(struct work *w, int64_t call) {
  wlm_matrix *matrix;
  wlm_status status = create_matrix(w, call, WLM_STATS_ESTIMATED, &matrix);
  if (status == WLM_OK) wlm_matrix_destroy(matrix);
  return status;
}

static wlm_status matrix_measured(struct work *w, int64_t call) {
  wlm_matrix *matrix;
  wlm_status status = create_matrix(w, call, WLM_STATS_MEASURED, &matrix);
  if (status == WLM_OK) wlm_matrix_destroy(matrix);
  return status;
}

static wlm_status spmm_new_matrix(struct work *w, int64_t call) {
  const wlmi_block_product product = {
      .a = block_of(w, call), .n = w->bench->n, .b = w->b, .c = w->c, .stream = w->stream.handle};
  return w->spmm.multiply(w->spmm.user, &product);
}

static wlm_status bare_products(struct work *w, int64_t call) {
  const int64_t block = call % BLOCKS;
  return repeat(w, &w->products, block ? w->ends[block - 1] : 0, w->ends[block]);
}

static wlm_status execute(struct work *w, int64_t call) {
  (void)call;
  return wlm_plan_execute(w->plan, &w->call);
}

static wlm_status bare_execute(struct work *w, int64_t call) {
  (void)call;
  return repeat(w, &w->execute, 0, w->execute.count);
}

static const struct measured {
  const char *name;
  int64_t batch; /* calls */
  int most_samples;
  wlm_status (*call)(struct work *w, int64_t call);
  wlm_status (*baseline)(struct work *w, int64_t call); /* NULL = there is none */
  void (*after)(struct work *w);                        /* after each batch, outside of the time; may be NULL */
} all_measured[] = {
    {"context_create", 1, 11, context_create, NULL, context_destroy},
    {"plan_known", BATCH, SAMPLES, plan_known, NULL, NULL},
    {"rebind", BATCH, SAMPLES, rebind, NULL, NULL},
    {"matrix_estimated", BATCH, SAMPLES, matrix_estimated, NULL, NULL},
    {"matrix_measured", BATCH, SAMPLES, matrix_measured, NULL, NULL},
    {"spmm_new_matrix", BATCH, SAMPLES, spmm_new_matrix, bare_products, NULL},
    {"execute", BATCH, SAMPLES, execute, bare_execute, NULL},
};
enum { MEASURED = sizeof all_measured / sizeof *all_measured };

/* ---- setting up -------------------------------------------------------------------------------------------- */

/* Records the second product with each block, because the first one may compile a kernel or allocate a workspace. */
static wlm_status record_launches(struct work *w) {
  for (int64_t i = 0; i < BLOCKS; i++) WLM_CHECK(spmm_new_matrix(w, i));
  for (int64_t i = 0; i < BLOCKS; i++) {
    WLM_CHECK(record(w, spmm_new_matrix, i, &w->products));
    w->ends[i] = w->products.count;
  }
  WLM_CHECK(record(w, execute, 0, &w->execute));
  if (!w->products.count || !w->execute.count)
    return wlmi_fail(WLM_ERR_INTERNAL, "no launch was recorded, so there is no baseline");
  return w->device->ops->synchronize(w->device, w->stream.handle);
}

static wlm_status set_up(struct work *w) {
  const wlmi_device_ops *ops = w->device->ops;
  wlm_context *context = w->bench->context;
  WLM_CHECK(wlmi_bench_stream_open(w->device, &w->stream));
  WLM_CHECK(wlmi_block_set_create(context, w->bench->csr, &sampling, BLOCKS, w->bench->seed, &w->set));
  w->spmm = wlmi_block_warploom(context);
  const size_t b_size = (size_t)(w->set.most_cols * w->bench->n) * sizeof *w->b;
  WLM_CHECK(ops->allocate(w->device, b_size, (void **)&w->b));
  WLM_CHECK(ops->fill(w->device, NULL, w->b, 0, b_size));
  WLM_CHECK(ops->allocate(w->device, (size_t)(w->set.most_rows * w->bench->n) * sizeof *w->c, (void **)&w->c));
  WLM_CHECK(ops->synchronize(w->device, NULL)); /* fill uses another stream */
  w->problem.n = w->bench->n;
  WLM_CHECK(create_matrix(w, 0, WLM_STATS_MEASURED, &w->matrix));
  WLM_CHECK(wlm_plan_create(context, w->matrix, &w->problem, &w->plan));
  WLM_CHECK(wlm_plan_create(context, w->matrix, &w->problem, &w->rebound));
  if (wlm_plan_workspace_size(w->plan))
    WLM_CHECK(ops->allocate(w->device, wlm_plan_workspace_size(w->plan), &w->workspace));
  w->call.b = w->b;
  w->call.c = w->c;
  w->call.workspace = w->workspace;
  w->call.workspace_size = wlm_plan_workspace_size(w->plan);
  w->call.stream = w->stream.handle;
  return record_launches(w);
}

static void tear_down(struct work *w) {
  const wlmi_device_ops *ops = w->device->ops;
  wlmi_free(w->execute.list);
  wlmi_free(w->products.list);
  ops->release(w->device, w->workspace);
  wlm_plan_destroy(w->plan);
  wlm_plan_destroy(w->rebound);
  wlm_matrix_destroy(w->matrix);
  ops->release(w->device, w->b);
  ops->release(w->device, w->c);
  wlmi_block_set_release(&w->set);
  wlmi_bench_stream_close(&w->stream);
}

/* ---- timing -------------------------------------------------------------------------------------------------- */

struct figure {
  double seconds, spread; /* of one call */
};

/* Seconds of a call of one batch. */
static wlm_status sample(struct work *w, const struct measured *m, wlm_status (*call)(struct work *, int64_t),
                         double *seconds) {
  const double start = wlmi_seconds();
  for (int64_t i = 0; i < m->batch; i++) WLM_CHECK(call(w, i));
  *seconds = (wlmi_seconds() - start) / (double)m->batch;
  if (m->after) m->after(w);
  return w->device->ops->synchronize(w->device, w->stream.handle);
}

/* figures[0] is for the call, figures[1] for its baseline. */
static wlm_status measure(struct work *w, const struct measured *m, struct figure figures[2]) {
  wlm_status (*const calls[2])(struct work *, int64_t) = {m->call, m->baseline};
  const int samples = w->bench->samples < m->most_samples ? w->bench->samples : m->most_samples;
  double *seconds = NULL, ignored;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array((int64_t)2 * samples, sizeof *seconds, "samples", (void **)&seconds));
  for (int s = -1; s < samples; s++) /* the first is a warm-up */
    for (int i = 0; i < 2; i++)
      if (calls[i]) WLM_TRY(sample(w, m, calls[i], s < 0 ? &ignored : &seconds[i * samples + s]));
  for (int i = 0; i < 2; i++)
    if (calls[i])
      wlmi_timing_summarise(seconds + (int64_t)i * samples, samples, &figures[i].seconds, &figures[i].spread);
done:
  wlmi_free(seconds);
  return status;
}

static void write(const struct work *w, const struct measured *m, const struct figure figures[2], const char *failure,
                  wlmi_text *line) {
  wlmi_results_begin(line, w->bench);
  wlmi_json_put(line, "n=%jd case=%s us=%.4f baseline_us=%.4f spread=%.4f batch=%jd failed=%s", w->bench->n, m->name,
                1e6 * figures[0].seconds, 1e6 * figures[1].seconds, figures[0].spread, m->batch, failure);
  wlmi_results_end(line);
}

/* A case that fails gets a line without a time and does not affect the others. */
static wlm_status run(const wlmi_bench_case *bench, wlmi_text *line) {
  struct work w = {.bench = bench,
                   .opening = WLM_CONTEXT_OPTIONS_INIT,
                   .device = wlmi_context_device(bench->context),
                   .problem = WLM_PROBLEM_INIT,
                   .call = WLM_EXECUTE_ARGS_INIT};
  w.opening.device = bench->options->device;
  w.opening.database = bench->options->database;
  wlm_status status;
  WLM_TRY(set_up(&w));
  for (int i = 0; i < MEASURED; i++) {
    struct figure figures[2] = {{NAN, NAN}, {NAN, NAN}};
    const wlm_status measured = measure(&w, &all_measured[i], figures);
    write(&w, &all_measured[i], figures, measured == WLM_OK ? "" : wlm_error_detail(), line);
    if (measured != WLM_OK) WLM_TRY(w.device->ops->synchronize(w.device, w.stream.handle));
  }
done:
  tear_down(&w);
  return status;
}

const wlmi_bench_suite wlmi_suite_dispatch = {
    .name = "dispatch",
    .help = "host time of the library's calls, bare launches beside",
    .shown = "case us baseline_us spread failed",
    .run = run,
    .samples = SAMPLES,
    .stays_on_host = 1,
    .is_synthetic = 1,
};
