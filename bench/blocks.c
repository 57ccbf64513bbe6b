#include "bench/blocks.h"

#include "bench/openmp_loop.h"
#include "core/base/memory.h"
#include "runtime/cuda/device.h"

/* ---- streams ---- */

static wlm_status open_cuda(wlmi_bench_stream *stream) {
  wlmi_cuda_scope scope;
  WLM_CHECK(wlmi_cuda_enter(stream->device, &scope));
  stream->pushed = scope.pushed;
  wlm_status status = WLM_CUDA(cuStreamCreate, (CUstream *)&stream->handle, CU_STREAM_NON_BLOCKING);
  if (status != WLM_OK) wlmi_cuda_leave(&scope);
  return status;
}

static void close_cuda(wlmi_bench_stream *stream) {
  wlmi_cuda.cuStreamDestroy(stream->handle);
  wlmi_cuda_leave(&(wlmi_cuda_scope){stream->pushed});
}

wlm_status wlmi_bench_stream_open(wlmi_device *device, wlmi_bench_stream *stream) {
  *stream = (wlmi_bench_stream){.device = device};
  if (device->info.limits.target != WLMI_TARGET_CUDA) return WLM_OK;
  wlm_status status = open_cuda(stream);
  if (status != WLM_OK) *stream = (wlmi_bench_stream){0};
  return status;
}

void wlmi_bench_stream_close(wlmi_bench_stream *stream) {
  if (stream->handle) close_cuda(stream);
  *stream = (wlmi_bench_stream){0};
}

/* ---- methods ---- */

static wlm_status multiply(void *user, const wlmi_block_product *p) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = p->n;
  problem.transpose = p->transpose;
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = p->b;
  args.c = p->c;
  args.stream = p->stream;
  return wlm_spmm(user, p->a, &problem, &args);
}

wlmi_block_method wlmi_block_warploom(wlm_context *context) {
  return (wlmi_block_method){.name = "warploom", .is_ours = 1, .multiply = multiply, .user = context};
}

static wlm_status multiply_openmp(void *user, const wlmi_block_product *p) {
  wlmi_openmp_loop_run(user, p->a, p->transpose, p->n, p->b, p->c);
  return WLM_OK;
}

static void destroy_openmp(void *user) { wlmi_openmp_loop_destroy(user); }

wlm_status wlmi_block_openmp(wlmi_block_method *method) {
  wlmi_openmp_loop *loop;
  wlm_status status = wlmi_openmp_loop_create(WLM_I32, &loop);
  *method = (wlmi_block_method){
      .name = "openmp", .multiply = multiply_openmp, .destroy = status == WLM_OK ? destroy_openmp : NULL, .user = loop};
  return status;
}

void wlmi_block_method_release(wlmi_block_method *method) {
  if (method->destroy) method->destroy(method->user);
  *method = (wlmi_block_method){0};
}

/* ---- sets of blocks ---- */

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void count_block(struct wlmi_block_means *means, const wlmi_csr_host *block, int64_t of) {
  means->rows += (double)block->rows / (double)of;
  means->cols += (double)block->cols / (double)of;
  means->nnz += (double)block->nnz / (double)of;
}

static wlm_status add_batch(wlm_context *context, const wlmi_neighbour_batch *batch, int64_t number, int64_t batches,
                            wlmi_block_set *set) {
  wlm_status status = WLM_OK;
  for (int layer = 0; layer < set->layers && status == WLM_OK; layer++) {
    const wlmi_csr_host *block = &batch->blocks[layer];
    set->most_rows = larger(set->most_rows, block->rows);
    set->most_cols = larger(set->most_cols, block->cols);
    count_block(&set->means[layer], block, batches);
    count_block(&set->all, block, set->count);
    status = wlmi_upload_create(context, block, WLM_I32, &set->uploads[number * set->layers + layer]);
  }
  return status;
}

wlm_status wlmi_block_set_create(wlm_context *context, const wlmi_csr_host *graph,
                                 const wlmi_neighbour_options *options, int64_t batches, uint64_t seed,
                                 wlmi_block_set *set) {
  wlmi_neighbour_sampler *sampler = NULL;
  wlm_status status;
  *set = (wlmi_block_set){.layers = options->layers, .count = batches * options->layers};
  set->uploads = wlmi_alloc_zero((size_t)set->count, sizeof *set->uploads);
  if (!set->uploads) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "blocks"));
  WLM_TRY(wlmi_neighbour_create(graph, &sampler));
  for (int64_t b = 0; b < batches; b++) {
    wlmi_neighbour_batch batch;
    WLM_TRY(wlmi_neighbour_sample(sampler, options, seed + (uint64_t)b, &batch));
    status = add_batch(context, &batch, b, batches, set);
    wlmi_neighbour_batch_release(&batch);
    if (status != WLM_OK) goto done;
  }
done:
  wlmi_neighbour_destroy(sampler);
  if (status != WLM_OK) wlmi_block_set_release(set);
  return status;
}

void wlmi_block_set_release(wlmi_block_set *set) {
  for (int64_t i = 0; set->uploads && i < set->count; i++) wlmi_upload_release(&set->uploads[i]);
  wlmi_free(set->uploads);
  *set = (wlmi_block_set){0};
}
