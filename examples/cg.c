/* Conjugate gradients with 16 right-hand sides at once: A X = F for the 5-point Laplacian of a square, with X, F and
 * the directions column-major, as solvers hold them. Each step is one product, by a plan that was prepared for many
 * calls. Where there is a GPU and cuSPARSE, the product of a step is also timed there, beside cusparseSpMM.
 * cc cg.c $(pkg-config --cflags --libs warploom) -lm -ldl && ./a.out [points of a side] */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warploom/warploom.h>

enum { RIGHT = 16, MOST_STEPS = 2000 };

static void check(wlm_status status) {
  if (status == WLM_OK) return;
  fprintf(stderr, "%s: %s\n", wlm_status_message(status), wlm_error_detail());
  exit(1);
}

static void *allocate(size_t size) {
  void *memory = aligned_alloc(64, (size + 64) / 64 * 64);
  if (!memory) exit(1);
  return memset(memory, 0, size);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The matrix; returns its number of non-zeros. */
static int64_t laplacian(int side, int32_t *rowptr, int32_t *colind, double *values) {
  int32_t nnz = 0;
  for (int y = 0; y < side; y++)
    for (int x = 0; x < side; x++) {
      const int neighbours[5][2] = {{0, -1}, {-1, 0}, {0, 0}, {1, 0}, {0, 1}};
      for (int k = 0; k < 5; k++) {
        const int at_x = x + neighbours[k][0], at_y = y + neighbours[k][1];
        if (at_x < 0 || at_x >= side || at_y < 0 || at_y >= side) continue;
        colind[nnz] = at_y * side + at_x;
        values[nnz++] = k == 2 ? 4 : -1;
      }
      rowptr[y * side + x + 1] = nnz;
    }
  return nnz;
}

static double dot(const double *a, const double *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
  return sum;
}

/* ---- the product of a step on a GPU, beside cuSPARSE; both libraries are found at run time ---- */

#define DRIVER(X)                                    \
  X(cuDevicePrimaryCtxRetain, (void **, int))        \
  X(cuCtxSetCurrent, (void *))                       \
  X(cuCtxSynchronize, (void))                        \
  X(cuMemAlloc_v2, (void **, size_t))                \
  X(cuMemcpyHtoD_v2, (void *, const void *, size_t)) \
  X(cuMemcpyDtoH_v2, (void *, const void *, size_t))
#define CUSPARSE(X)                                                                                      \
  X(cusparseCreate, (void **))                                                                           \
  X(cusparseCreateCsr, (void **, int64_t, int64_t, int64_t, void *, void *, void *, int, int, int, int)) \
  X(cusparseCreateDnMat, (void **, int64_t, int64_t, int64_t, void *, int, int))                         \
  X(cusparseSpMM_bufferSize,                                                                             \
    (void *, int, int, const void *, void *, void *, const void *, void *, int, int, size_t *))          \
  X(cusparseSpMM, (void *, int, int, const void *, void *, void *, const void *, void *, int, int, void *))
#define FIELD(name, parameters) static int(*name) parameters;
DRIVER(FIELD)
CUSPARSE(FIELD)
enum { INDEX_32 = 2, DOUBLE = 1, BY_COLUMNS = 1 }; /* CUSPARSE_INDEX_32I, CUDA_R_64F, CUSPARSE_ORDER_COL */

static int has_functions(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW), *cusparse = dlopen("libcusparse.so.12", RTLD_NOW);
  if (!cusparse) cusparse = dlopen("libcusparse.so.13", RTLD_NOW);
  if (!driver || !cusparse) return 0;
  void *found = driver;
#define FIND(name, parameters) found = found ? *(void **)&name = dlsym(library, #name) : NULL;
  void *library = driver;
  DRIVER(FIND)
  library = cusparse;
  CUSPARSE(FIND)
  return found != NULL;
}

static void need(int result, const char *call) {
  if (!result) return;
  fprintf(stderr, "%s: error %d\n", call, result);
  exit(1);
}
#define CALL(name, ...) need(name(__VA_ARGS__), #name)

static void *on_gpu(const void *from, size_t size) {
  void *memory;
  CALL(cuMemAlloc_v2, &memory, size ? size : 16);
  if (from) CALL(cuMemcpyHtoD_v2, memory, from, size);
  return memory;
}

/* A product of either library. */
typedef struct product {
  const wlm_plan *plan; /* NULL = by cuSPARSE */
  wlm_execute_args args;
  void *handle, *a, *p, *ap, *buffer;
} product;

static void multiply(const product *m) {
  const double one = 1, zero = 0;
  if (m->plan)
    check(wlm_plan_execute(m->plan, &m->args));
  else
    CALL(cusparseSpMM, m->handle, 0, 0, &one, m->a, m->p, &zero, m->ap, DOUBLE, 0, m->buffer);
}

/* Microseconds of one of many products. */
static double time_of(const product *m) {
  double begin = 0;
  for (int i = -20; i < 200; i++) {
    if (!i) CALL(cuCtxSynchronize), begin = seconds();
    multiply(m);
  }
  CALL(cuCtxSynchronize);
  return 1e6 * (seconds() - begin) / 200;
}

static product by_cusparse(const wlm_csr *csr, int64_t rows, void *p, void *ap) {
  const double one = 1, zero = 0;
  product m = {.plan = NULL};
  size_t size;
  CALL(cusparseCreate, &m.handle);
  CALL(cusparseCreateCsr, &m.a, rows, rows, csr->nnz, (void *)csr->rowptr, (void *)csr->colind, (void *)csr->values,
       INDEX_32, INDEX_32, 0, DOUBLE);
  CALL(cusparseCreateDnMat, &m.p, rows, RIGHT, rows, p, DOUBLE, BY_COLUMNS);
  CALL(cusparseCreateDnMat, &m.ap, rows, RIGHT, rows, ap, DOUBLE, BY_COLUMNS);
  CALL(cusparseSpMM_bufferSize, m.handle, 0, 0, &one, m.a, m.p, &zero, m.ap, DOUBLE, 0, &size);
  m.buffer = on_gpu(NULL, size);
  return m;
}

/* of: the matrix on the host. */
static void time_beside_cusparse(const wlm_csr *of, const wlm_problem *problem, const double *p) {
  const int64_t rows = of->rows;
  const size_t block = (size_t)rows * RIGHT * sizeof *p;
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  options.device = "cuda:0";
  wlm_context *context = NULL;
  if (!has_functions() || wlm_context_create(&options, &context) != WLM_OK) {
    printf("cuSPARSE was not timed: it needs a GPU, its driver and libcusparse.so.12 or .13\n");
    return;
  }
  void *gpu;
  CALL(cuDevicePrimaryCtxRetain, &gpu, 0);
  CALL(cuCtxSetCurrent, gpu);
  wlm_csr csr = *of;
  csr.rowptr = on_gpu(of->rowptr, (size_t)(rows + 1) * sizeof(int32_t));
  csr.colind = on_gpu(of->colind, (size_t)of->nnz * sizeof(int32_t));
  csr.values = on_gpu(of->values, (size_t)of->nnz * sizeof(double));
  void *const from = on_gpu(p, block), *const to[] = {on_gpu(NULL, block), on_gpu(NULL, block)};
  wlm_matrix *matrix;
  wlm_plan *plan;
  check(wlm_matrix_create(context, &csr, NULL, &matrix));
  check(wlm_plan_create(context, matrix, problem, &plan));
  product own = {.plan = plan, .args = WLM_EXECUTE_ARGS_INIT};
  own.args.b = from, own.args.c = to[0], own.args.ldb = own.args.ldc = rows;
  own.args.workspace_size = wlm_plan_workspace_size(plan);
  own.args.workspace = on_gpu(NULL, own.args.workspace_size);
  check(wlm_plan_prepare(plan, on_gpu(NULL, wlm_plan_prepared_size(plan)), NULL));
  const product other = by_cusparse(&csr, rows, from, to[1]);
  printf("a product on a GPU: %.1f us, by cuSPARSE %.1f us\n", time_of(&own), time_of(&other));
  double *results[] = {allocate(block), allocate(block)}, apart = 0;
  for (int i = 0; i < 2; i++) CALL(cuMemcpyDtoH_v2, results[i], to[i], block);
  for (int64_t i = 0; i < rows * RIGHT; i++) apart = fmax(apart, fabs(results[0][i] - results[1][i]));
  printf("their results differ by at most %.1g\n", apart);
  free(results[0]), free(results[1]);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context); /* the memory ends with the process */
}

/* ---- the solver ---- */

int main(int argc, char **argv) {
  const int side = argc > 1 ? atoi(argv[1]) : 64;
  if (side < 2 || side > 10000) return fprintf(stderr, "a side of 2 to 10000 points\n"), 1;
  const int64_t rows = (int64_t)side * side;
  const size_t block = (size_t)rows * RIGHT * sizeof(double);
  int32_t *rowptr = allocate((size_t)(rows + 1) * sizeof *rowptr),
          *colind = allocate((size_t)rows * 5 * sizeof *colind);
  double *values = allocate((size_t)rows * 5 * sizeof *values), *x = allocate(block), *r = allocate(block),
         *p = allocate(block), *ap = allocate(block);
  double rr[RIGHT], first[RIGHT], in_products = 0;

  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  options.device = "host"; /* on a GPU the vectors' part is a kernel or cuBLAS; the product's lines stay as they are */
  wlm_context *context;
  check(wlm_context_create(&options, &context));
  wlm_csr csr = WLM_CSR_INIT;
  csr.rows = csr.cols = rows, csr.nnz = laplacian(side, rowptr, colind, values);
  csr.rowptr = rowptr, csr.colind = colind, csr.values = values, csr.value_type = WLM_F64;
  wlm_matrix *matrix;
  check(wlm_matrix_create(context, &csr, NULL, &matrix));

  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = RIGHT;
  problem.dense_type = WLM_F64;
  problem.b_order = problem.c_order = WLM_COLUMN_MAJOR; /* each vector is contiguous */
  problem.policy.expected_calls = 1000;
  wlm_plan *plan;
  check(wlm_plan_create(context, matrix, &problem, &plan));
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = p, args.c = ap, args.ldb = args.ldc = rows;
  args.workspace_size = wlm_plan_workspace_size(plan);
  args.workspace = allocate(args.workspace_size);
  void *prepared = allocate(wlm_plan_prepared_size(plan));
  check(wlm_plan_prepare(plan, prepared, NULL));

  for (int64_t j = 0; j < RIGHT; j++) {
    double *const f = r + j * rows; /* x = 0, so the residual is the right-hand side */
    for (int64_t i = 0; i < rows; i++) f[i] = (double)((i * (j + 3)) % 17) - 8;
    first[j] = rr[j] = dot(f, f, rows);
  }
  memcpy(p, r, block);
  int step = 0, left = RIGHT;
  const double started = seconds();
  for (; step < MOST_STEPS && left; step++) {
    const double begin = seconds();
    check(wlm_plan_execute(plan, &args)); /* AP = A P */
    in_products += seconds() - begin;
    left = 0;
    for (int64_t j = 0; j < RIGHT; j++) {
      double *const xj = x + j * rows, *const rj = r + j * rows, *const pj = p + j * rows, *const apj = ap + j * rows;
      if (rr[j] <= 1e-20 * first[j]) continue; /* this one has converged */
      const double alpha = rr[j] / dot(pj, apj, rows), before = rr[j];
      for (int64_t i = 0; i < rows; i++) xj[i] += alpha * pj[i], rj[i] -= alpha * apj[i];
      rr[j] = dot(rj, rj, rows);
      for (int64_t i = 0; i < rows; i++) pj[i] = rj[i] + rr[j] / before * pj[i];
      left += rr[j] > 1e-20 * first[j];
    }
  }
  printf("%s\n%d right-hand sides of %lld unknowns: %s after %d steps of %.0f us, %.0f us in each product\n",
         wlm_plan_variant(plan), RIGHT, (long long)rows, left ? "not converged" : "converged", step,
         1e6 * (seconds() - started) / step, 1e6 * in_products / step);

  /* the residual of the solution itself */
  double worst = 0;
  args.b = x;
  check(wlm_plan_execute(plan, &args));
  for (int64_t j = 0; j < RIGHT; j++)
    for (int64_t i = 0; i < rows; i++) worst = fmax(worst, fabs(ap[j * rows + i] - ((double)((i * (j + 3)) % 17) - 8)));
  printf("largest residual %s 1e-6\n", worst < 1e-6 ? "<" : ">=");
  time_beside_cusparse(&csr, &problem, p);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context);
  void *const all[] = {rowptr, colind, values, x, r, p, ap, args.workspace, prepared};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  return left != 0;
}
