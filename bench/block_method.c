#include "bench/block_method.h"

#include "bench/openmp_loop.h"
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
  if (device->info.limits.target != WLM_TARGET_CUDA) return WLM_OK;
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
