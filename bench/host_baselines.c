#include "bench/host_baselines.h"

#include <stdio.h>

#include "bench/openmp_loop.h"
#include "core/base/memory.h"

/* ---- the plain loop ---- */

struct openmp {
  wlmi_host_product product;
  wlmi_openmp_loop *loop;
};

static void destroy_openmp(void *user) {
  struct openmp *baseline = user;
  wlmi_openmp_loop_destroy(baseline->loop);
  wlmi_free(baseline);
}

static wlm_status enqueue_openmp(void *user, void *stream) {
  const struct openmp *baseline = user;
  const wlmi_host_product *p = &baseline->product;
  (void)stream;
  wlmi_openmp_loop_run(baseline->loop, p->csr, 0, p->n, p->b, p->c);
  return WLM_OK;
}

static wlm_status enter_openmp(const wlmi_host_product *product, wlmi_method *method) {
  struct openmp *baseline = wlmi_alloc_zero(1, sizeof *baseline);
  if (!baseline) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "OpenMP loop");
  baseline->product = *product;
  method->user = baseline;
  method->enqueue = enqueue_openmp;
  method->destroy = destroy_openmp;
  return wlmi_openmp_loop_create(product->csr->rowptr_type, &baseline->loop);
}

/* ---- all of them ---- */

static const struct {
  const char *name;
  wlm_status (*enter)(const wlmi_host_product *product, wlmi_method *method);
} baselines[WLMI_HOST_BASELINES] = {{"openmp", enter_openmp}, {"graphblas", wlmi_baseline_graphblas}};

void wlmi_host_baselines_enter(const wlmi_operands *operands, int count, wlmi_method *methods) {
  const wlmi_host_product product = {wlmi_matrix_csr(operands->matrix), operands->spec.problem.n,
                                     wlmi_operands_find(operands, "b")->buffer.memory,
                                     operands->output[0].buffer.memory};
  for (int i = 0; i < count; i++) {
    wlm_status status;
    methods[i] = (wlmi_method){0};
    snprintf(methods[i].name, sizeof methods[i].name, "%s", baselines[i].name);
    if (operands->spec.problem.dense_type != WLM_F32)
      status = wlmi_fail(WLM_ERR_UNSUPPORTED, "computes in f32 only; leave out --type");
    else if (!product.csr->values)
      status = wlmi_fail(WLM_ERR_UNSUPPORTED, "needs values");
    else
      status = baselines[i].enter(&product, &methods[i]);
    if (status != WLM_OK) wlmi_method_give_up(&methods[i], status);
  }
}
