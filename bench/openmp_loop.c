/* Threads take 64 rows at a time and add a row of B for every non-zero. The transposed product uses atomic additions,
 * because threads share rows of C. The loops are compiled like the emitted kernels, by the system's compiler with the
 * same flags, so build type and instruction set are equal for both. */
#include "bench/openmp_loop.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "runtime/host/compiler.h"
#include "runtime/host/module.h"

typedef void product_loop(int64_t rows, int64_t cols, const void *rowptr, const int *colind, const float *values,
                          int64_t n, const float *b, float *c);

static const char loop_text[] =
    "void spmm(long rows, long cols, const rowptr_t *rowptr, const int *colind, const float *values,\n"
    "          long n, const float *b, float *restrict c) {\n"
    "  (void)cols;\n"
    "#pragma omp parallel for schedule(dynamic, 64)\n"
    "  for (long i = 0; i < rows; i++) {\n"
    "    for (long j = 0; j < n; j++) c[i * n + j] = 0;\n"
    "    for (rowptr_t p = rowptr[i]; p < rowptr[i + 1]; p++)\n"
    "      for (long j = 0; j < n; j++) c[i * n + j] += values[p] * b[colind[p] * n + j];\n"
    "  }\n"
    "}\n"
    "void spmm_transposed(long rows, long cols, const rowptr_t *rowptr, const int *colind, const float *values,\n"
    "                     long n, const float *b, float *restrict c) {\n"
    "#pragma omp parallel for\n"
    "  for (long i = 0; i < cols * n; i++) c[i] = 0;\n"
    "#pragma omp parallel for schedule(dynamic, 64)\n"
    "  for (long i = 0; i < rows; i++)\n"
    "    for (rowptr_t p = rowptr[i]; p < rowptr[i + 1]; p++)\n"
    "      for (long j = 0; j < n; j++) {\n"
    "#pragma omp atomic\n"
    "        c[colind[p] * n + j] += values[p] * b[i * n + j];\n"
    "      }\n"
    "}\n";

struct wlmi_openmp_loop {
  wlmi_module *module;
  product_loop *loops[2]; /* by transpose */
};

void wlmi_openmp_loop_destroy(wlmi_openmp_loop *loop) {
  if (!loop) return;
  wlmi_host_module_close(loop->module);
  wlmi_free(loop);
}

static wlm_status build(wlm_index rowptr_type, wlmi_openmp_loop *loop) {
  wlmi_text source = {0};
  void *image = NULL;
  size_t size;
  wlm_status status;
  wlmi_text_printf(&source, "typedef %s rowptr_t;\n%s", rowptr_type == WLM_I64 ? "long" : "int", loop_text);
  if (source.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "OpenMP loop"));
  WLM_TRY(wlmi_host_compile(source.data, &image, &size));
  WLM_TRY(wlmi_host_module_open(image, size, &loop->module));
  loop->loops[0] = (product_loop *)wlmi_host_module_symbol(loop->module, "spmm");
  loop->loops[1] = (product_loop *)wlmi_host_module_symbol(loop->module, "spmm_transposed");
  if (!loop->loops[0] || !loop->loops[1])
    status = wlmi_fail(WLM_ERR_COMPILE, "the OpenMP loops were compiled to nothing");
done:
  wlmi_free(image);
  wlmi_text_release(&source);
  return status;
}

wlm_status wlmi_openmp_loop_create(wlm_index rowptr_type, wlmi_openmp_loop **out) {
  wlmi_openmp_loop *loop = wlmi_alloc_zero(1, sizeof *loop);
  *out = NULL;
  if (!loop) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "OpenMP loop");
  wlm_status status = build(rowptr_type, loop);
  if (status == WLM_OK)
    *out = loop;
  else
    wlmi_openmp_loop_destroy(loop);
  return status;
}

void wlmi_openmp_loop_run(const wlmi_openmp_loop *loop, const wlm_csr *a, int transpose, int64_t n, const float *b,
                          float *c) {
  loop->loops[!!transpose](a->rows, a->cols, a->rowptr, a->colind, a->values, n, b, c);
}
