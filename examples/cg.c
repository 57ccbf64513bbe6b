/* Conjugate gradients with 16 right-hand sides at once: A X = F for the 5-point Laplacian of a square, with X, F and
 * the directions column-major, as solvers hold them. Each step is one product, by a plan that was prepared for many
 * calls. cc cg.c $(pkg-config --cflags --libs warploom) -lm && ./a.out [points of a side] */
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
  printf("%s\n%d right-hand sides of %lld unknowns: %s after %d steps, %.0f us in each product\n",
         wlm_plan_variant(plan), RIGHT, (long long)rows, left ? "not converged" : "converged", step,
         1e6 * in_products / step);

  /* the residual of the solution itself */
  double worst = 0;
  args.b = x;
  check(wlm_plan_execute(plan, &args));
  for (int64_t j = 0; j < RIGHT; j++)
    for (int64_t i = 0; i < rows; i++) worst = fmax(worst, fabs(ap[j * rows + i] - ((double)((i * (j + 3)) % 17) - 8)));
  printf("largest residual %s 1e-6\n", worst < 1e-6 ? "<" : ">=");
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context);
  void *const all[] = {rowptr, colind, values, x, r, p, ap, args.workspace, prepared};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  return left != 0;
}
