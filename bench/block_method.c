#include "bench/block_method.h"

#include "bench/openmp_loop.h"

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
