/* The OpenMP loop among what the host device is measured against. */
#include "bench/host_baselines.h"
#include "bench/openmp_loop.h"
#include "common/memory.h"

struct openmp {
  wlmi_host_product product;
  wlmi_openmp_loop *loop;
};

static void destroy(void *user) {
  struct openmp *baseline = user;
  wlmi_openmp_loop_destroy(baseline->loop);
  wlmi_free(baseline);
}

static wlm_status create(const wlmi_host_product *product, void **out) {
  struct openmp *baseline = wlmi_alloc_zero(1, sizeof *baseline);
  if (!baseline) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "OpenMP loop");
  baseline->product = *product;
  wlm_status status = wlmi_openmp_loop_create(product->csr->rowptr_type, &baseline->loop);
  if (status == WLM_OK)
    *out = baseline;
  else
    destroy(baseline);
  return status;
}

static wlm_status enqueue(void *user, void *stream) {
  const struct openmp *baseline = user;
  const wlmi_host_product *p = &baseline->product;
  (void)stream;
  wlmi_openmp_loop_run(baseline->loop, p->csr, 0, p->n, p->b, p->c);
  return WLM_OK;
}

const wlmi_host_baseline wlmi_baseline_openmp = {"openmp", create, enqueue, destroy};
