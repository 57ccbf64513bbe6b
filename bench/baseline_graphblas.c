/* SuiteSparse:GraphBLAS, a well-maintained library for the host: C = A * B over the semiring plus-times in f32, A
 * sparse by row, B and C full by row.
 *
 * Its fastest way to a dense C is C += A * B into a full C, where it works in place with vector instructions. Plain C =
 * A * B builds a bitmap first and took 2 to 6 times as long at N = 32 and 128. So a call zeroes C, lends it to
 * GraphBLAS and takes it back, which moves no data. B is lent until the end; A is copied once, since GraphBLAS has
 * 64-bit indices only. None of that, nor the first product (which may compile), is timed. It uses OpenMP's default
 * number of threads.
 *
 * The functions are declared here instead of including GraphBLAS.h, so any build can use a library that is installed at
 * run time; they are equal in versions 7 to 9. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/host_baselines.h"
#include "core/base/memory.h"

typedef struct matrix *matrix; /* GrB_Matrix and all other handles are pointers */
enum { NONBLOCKING = 0, COMPLETE = 0 };

static struct {
  int (*GrB_init)(int mode);
  int (*GrB_Matrix_new)(matrix *made, void *type, uint64_t rows, uint64_t cols);
  int (*GrB_Matrix_free)(matrix *freed);
  int (*GrB_Matrix_error)(const char **text, matrix about);
  int (*GrB_Matrix_wait)(matrix waited, int mode);
  int (*GrB_mxm)(matrix c, matrix mask, void *accumulate, void *semiring, matrix a, matrix b, void *descriptor);
  int (*GxB_Matrix_pack_CSR)(matrix into, uint64_t **p, uint64_t **j, void **x, uint64_t p_size, uint64_t j_size,
                             uint64_t x_size, bool one_value, bool unsorted, void *descriptor);
  int (*GxB_Matrix_pack_FullR)(matrix into, void **x, uint64_t size, bool one_value, void *descriptor);
  int (*GxB_Matrix_unpack_FullR)(matrix from, void **x, uint64_t *size, bool *one_value, void *descriptor);
  void **GrB_FP32, **GrB_PLUS_FP32, **GrB_PLUS_TIMES_SEMIRING_FP32;
} graphblas;

static const struct {
  const char *name;
  void *address;
} symbols[] = {
#define SYMBOL(name) \
  { #name, &graphblas.name }
    SYMBOL(GrB_init),
    SYMBOL(GrB_Matrix_new),
    SYMBOL(GrB_Matrix_free),
    SYMBOL(GrB_Matrix_error),
    SYMBOL(GrB_Matrix_wait),
    SYMBOL(GrB_mxm),
    SYMBOL(GxB_Matrix_pack_CSR),
    SYMBOL(GxB_Matrix_pack_FullR),
    SYMBOL(GxB_Matrix_unpack_FullR),
    SYMBOL(GrB_FP32),
    SYMBOL(GrB_PLUS_FP32),
    SYMBOL(GrB_PLUS_TIMES_SEMIRING_FP32),
#undef SYMBOL
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[512]; /* why there is no GraphBLAS; "" = there is */

static void *open_library(void) {
  static const char *const names[] = {"libgraphblas.so.9", "libgraphblas.so.8", "libgraphblas.so.7"};
  const char *file = secure_getenv("WARPLOOM_GRAPHBLAS");
  void *library = NULL;
  if (file && *file) {
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) snprintf(missing, sizeof missing, "WARPLOOM_GRAPHBLAS names it, but %s", dlerror());
    return library;
  }
  for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!library)
    snprintf(missing, sizeof missing,
             "no libgraphblas.so.7 to .9 on the library path; install it or let WARPLOOM_GRAPHBLAS name the file");
  return library;
}

static void load(void) {
  void *library = open_library();
  for (size_t i = 0; library && i < sizeof symbols / sizeof *symbols && !missing[0]; i++) {
    void *address = dlsym(library, symbols[i].name);
    if (!address) snprintf(missing, sizeof missing, "the library lacks %s", symbols[i].name);
    memcpy(symbols[i].address, &address, sizeof address);
  }
  int result = missing[0] ? 0 : graphblas.GrB_init(NONBLOCKING);
  if (result) snprintf(missing, sizeof missing, "GrB_init: error %d", result);
}

struct graphblas {
  matrix a, b, c;
  uint64_t b_size, c_size;
  void *c_memory;
};

static wlm_status check(int result, const char *call, matrix about) {
  const char *text = NULL;
  if (!result) return WLM_OK;
  if (about) graphblas.GrB_Matrix_error(&text, about);
  return wlmi_fail(WLM_ERR_DEVICE, "%s: error %d %s", call, result, text ? text : "");
}

#define GRAPHBLAS(name, about, ...) check(graphblas.name(about, __VA_ARGS__), #name, about)

static wlm_status take_back(matrix from, void **memory) {
  uint64_t size;
  bool one_value;
  *memory = NULL;
  return GRAPHBLAS(GxB_Matrix_unpack_FullR, from, memory, &size, &one_value, NULL);
}

static void zero(char *memory, int64_t size) {
  const int64_t piece = 1 << 16;
#pragma omp parallel for
  for (int64_t at = 0; at < size; at += piece) memset(memory + at, 0, (size_t)(size - at < piece ? size - at : piece));
}

/* Lends *c to GraphBLAS; afterwards *c is the pointer that came back. */
static wlm_status multiply(struct graphblas *baseline, void **c) {
  void *lent = *c;
  wlm_status status, returned;
  zero(*c, (int64_t)baseline->c_size);
  WLM_CHECK(GRAPHBLAS(GxB_Matrix_pack_FullR, baseline->c, c, baseline->c_size, false, NULL));
  status = GRAPHBLAS(GrB_mxm, baseline->c, NULL, *graphblas.GrB_PLUS_FP32, *graphblas.GrB_PLUS_TIMES_SEMIRING_FP32,
                     baseline->a, baseline->b, NULL);
  if (status == WLM_OK) status = GRAPHBLAS(GrB_Matrix_wait, baseline->c, COMPLETE);
  returned = take_back(baseline->c, c);
  if (status == WLM_OK) status = returned;
  if (status == WLM_OK && *c != lent) status = wlmi_fail(WLM_ERR_UNSUPPORTED, "GraphBLAS does not multiply in place");
  return status;
}

static wlm_status enqueue(void *user, void *stream) {
  struct graphblas *baseline = user;
  void *c = baseline->c_memory;
  (void)stream;
  return multiply(baseline, &c);
}

static void destroy(void *user) {
  struct graphblas *baseline = user;
  void *b;
  if (baseline->b) take_back(baseline->b, &b);
  if (baseline->a) graphblas.GrB_Matrix_free(&baseline->a);
  if (baseline->b) graphblas.GrB_Matrix_free(&baseline->b);
  if (baseline->c) graphblas.GrB_Matrix_free(&baseline->c);
  wlmi_free(baseline);
}

static int64_t row_begin(const wlm_csr *csr, int64_t row) {
  return csr->rowptr_type == WLM_I64 ? ((const int64_t *)csr->rowptr)[row] : ((const int32_t *)csr->rowptr)[row];
}

/* Copies A; returns 1 if the columns of some row do not ascend. */
static int copy_a(const wlm_csr *csr, uint64_t *p, uint64_t *j, float *x) {
  const int32_t *colind = csr->colind;
  int unsorted = 0;
  memcpy(x, csr->values, (size_t)csr->nnz * sizeof *x);
  for (int64_t row = 0; row <= csr->rows; row++) p[row] = (uint64_t)row_begin(csr, row);
  for (int64_t row = 0; row < csr->rows; row++)
    for (uint64_t k = p[row]; k < p[row + 1]; k++) {
      j[k] = (uint64_t)colind[k];
      unsorted |= k > p[row] && j[k] <= j[k - 1];
    }
  return unsorted;
}

/* GraphBLAS releases this memory with free(), so it must come from malloc and not from the caller's allocator. */
static wlm_status set_a(struct graphblas *baseline, const wlm_csr *csr) {
  const size_t p_size = (size_t)(csr->rows + 1) * sizeof(uint64_t), j_size = (size_t)csr->nnz * sizeof(uint64_t);
  const size_t x_size = (size_t)csr->nnz * sizeof(float);
  uint64_t *p = malloc(p_size), *j = malloc(j_size ? j_size : 1);
  void *x = malloc(x_size ? x_size : 1);
  wlm_status status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a copy of A for GraphBLAS");
  if (p && j && x) {
    const int unsorted = copy_a(csr, p, j, x);
    status = GRAPHBLAS(GxB_Matrix_pack_CSR, baseline->a, &p, &j, &x, p_size, j_size ? j_size : 1, x_size ? x_size : 1,
                       false, unsorted, NULL); /* p, j and x are NULL if GraphBLAS took them */
  }
  free(p);
  free(j);
  free(x);
  return status;
}

/* The first product uses a separate C, to check that the lent pointer comes back. */
static wlm_status try_out(struct graphblas *baseline) {
  void *c = malloc(baseline->c_size);
  if (!c) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a C for GraphBLAS");
  wlm_status status = multiply(baseline, &c);
  free(c);
  return status;
}

static wlm_status set_up(struct graphblas *baseline, const wlmi_host_product *product) {
  const wlm_csr *csr = product->csr;
  const uint64_t rows = (uint64_t)csr->rows, cols = (uint64_t)csr->cols, n = (uint64_t)product->n;
  void *type = *graphblas.GrB_FP32, *b = (void *)product->b;
  baseline->b_size = cols * n * sizeof(float);
  baseline->c_size = rows * n * sizeof(float);
  baseline->c_memory = product->c;
  WLM_CHECK(check(graphblas.GrB_Matrix_new(&baseline->a, type, rows, cols), "GrB_Matrix_new", NULL));
  WLM_CHECK(check(graphblas.GrB_Matrix_new(&baseline->b, type, cols, n), "GrB_Matrix_new", NULL));
  WLM_CHECK(check(graphblas.GrB_Matrix_new(&baseline->c, type, rows, n), "GrB_Matrix_new", NULL));
  WLM_CHECK(set_a(baseline, csr));
  WLM_CHECK(GRAPHBLAS(GxB_Matrix_pack_FullR, baseline->b, &b, baseline->b_size, false, NULL));
  return try_out(baseline);
}

wlm_status wlmi_baseline_graphblas(const wlmi_host_product *product, wlmi_method *method) {
  pthread_once(&once, load);
  if (missing[0]) return wlmi_fail(WLM_ERR_NOT_FOUND, "GraphBLAS: %s", missing);
  struct graphblas *baseline = wlmi_alloc_zero(1, sizeof *baseline);
  if (!baseline) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "GraphBLAS baseline");
  method->user = baseline;
  method->enqueue = enqueue;
  method->destroy = destroy;
  return set_up(baseline, product);
}
