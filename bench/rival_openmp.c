/* The OpenMP loop among what the host device is measured against. */
#include "bench/host_rivals.h"
#include "bench/openmp_loop.h"
#include "common/memory.h"

struct openmp {
  wlmi_host_product product;
  wlmi_openmp_loop *loop;
};

static void destroy(void *user) {
  struct openmp *rival = user;
  wlmi_openmp_loop_destroy(rival->loop);
  wlmi_free(rival);
}

static wlm_status create(const wlmi_host_product *product, void **out) {
  struct openmp *rival = wlmi_alloc_zero(1, sizeof *rival);
  if (!rival) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "OpenMP loop");
  rival->product = *product;
  wlm_status status = wlmi_openmp_loop_create(product->csr->rowptr_type, &rival->loop);
  if (status == WLM_OK)
    *out = rival;
  else
    destroy(rival);
  return status;
}

static wlm_status enqueue(void *user, void *stream) {
  const struct openmp *rival = user;
  const wlmi_host_product *p = &rival->product;
  (void)stream;
  wlmi_openmp_loop_run(rival->loop, p->csr, 0, p->n, p->b, p->c);
  return WLM_OK;
}

const wlmi_host_rival wlmi_rival_openmp = {"openmp", create, enqueue, destroy};
