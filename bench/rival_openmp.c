/* The loop that a C programmer writes: rows over threads, 64 at a time as they become free, a row of B added for every
 * non-zero. It is compiled like the emitted kernels, by the system's compiler with the same flags, so that neither side
 * gains from the build type or from instructions that the other may not use. */
#include "bench/host_rivals.h"
#include "common/memory.h"
#include "runtime/host/compiler.h"
#include "runtime/host/module.h"

typedef void product_loop(int64_t rows, const void *rowptr, const int *colind, const float *values, int64_t n,
                          const float *b, float *c);

static const char loop_text[] =
    "void spmm(long rows, const rowptr_t *rowptr, const int *colind, const float *values,\n"
    "          long n, const float *b, float *restrict c) {\n"
    "#pragma omp parallel for schedule(dynamic, 64)\n"
    "  for (long i = 0; i < rows; i++) {\n"
    "    for (long j = 0; j < n; j++) c[i * n + j] = 0;\n"
    "    for (rowptr_t p = rowptr[i]; p < rowptr[i + 1]; p++)\n"
    "      for (long j = 0; j < n; j++) c[i * n + j] += values[p] * b[colind[p] * n + j];\n"
    "  }\n"
    "}\n";

struct openmp {
  wlmi_host_product product;
  wlmi_module *module;
  product_loop *loop;
};

static void destroy(void *user) {
  struct openmp *rival = user;
  wlmi_host_module_close(rival->module);
  wlmi_free(rival);
}

static wlm_status build(struct openmp *rival) {
  wlmi_text source = {0};
  void *image = NULL;
  size_t size;
  wlm_status status;
  wlmi_text_printf(&source, "typedef %s rowptr_t;\n%s", rival->product.csr->rowptr_type == WLM_I64 ? "long" : "int",
                   loop_text);
  if (source.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "OpenMP loop"));
  WLM_TRY(wlmi_host_compile(source.data, &image, &size));
  WLM_TRY(wlmi_host_module_open(image, size, &rival->module));
  rival->loop = (product_loop *)wlmi_host_module_symbol(rival->module, "spmm");
  if (!rival->loop) status = wlmi_fail(WLM_ERR_COMPILE, "the OpenMP loop was compiled to nothing");
done:
  wlmi_free(image);
  wlmi_text_release(&source);
  return status;
}

static wlm_status create(const wlmi_host_product *product, void **out) {
  struct openmp *rival = wlmi_alloc_zero(1, sizeof *rival);
  if (!rival) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "OpenMP loop");
  rival->product = *product;
  wlm_status status = build(rival);
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
  rival->loop(p->csr->rows, p->csr->rowptr, p->csr->colind, p->csr->values, p->n, p->b, p->c);
  return WLM_OK;
}

const wlmi_host_rival wlmi_rival_openmp = {"openmp", create, enqueue, destroy};
