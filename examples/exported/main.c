/* Multiplies with a library that `warploom export --format c` wrote: no compiler, no database and no CUDA Toolkit is
 * needed where it runs, on a GPU only the driver. It checks every result.
 *   warploom export --format c -o tuned --arch sm_80,sm_90,host --for list.txt && make -C tuned
 *   cc main.c -Ituned/include tuned/libwarploom.a -fopenmp -lm -ldl -lpthread -o main && ./main host && ./main cuda */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warploom/warploom.h>

enum { ROWS = 20000, MEAN = 20, WIDEST = 128 };

static void check(wlm_status status) {
  if (status == WLM_OK) return;
  fprintf(stderr, "%s: %s\n", wlm_status_message(status), wlm_error_detail());
  exit(1);
}

/* ---- device memory: that of the host, or of the CUDA driver ---- */

static struct {
  int (*init)(unsigned flags);
  int (*retain)(void **context, int device);
  int (*make_current)(void *context);
  int (*allocate)(void **memory, size_t size);
  int (*to_device)(void *to, const void *from, size_t size);
  int (*to_host)(void *to, const void *from, size_t size);
} driver;

static void find(void *library, const char *name, void *function) {
  void *address = library ? dlsym(library, name) : NULL;
  memcpy(function, &address, sizeof address);
  if (address) return;
  fprintf(stderr, "no CUDA driver with %s\n", name);
  exit(1);
}

static void must(int result, const char *what) {
  if (!result) return;
  fprintf(stderr, "%s: CUDA error %d\n", what, result);
  exit(1);
}

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
  find(library, "cuInit", &driver.init);
  find(library, "cuDevicePrimaryCtxRetain", &driver.retain);
  find(library, "cuCtxSetCurrent", &driver.make_current);
  find(library, "cuMemAlloc_v2", &driver.allocate);
  find(library, "cuMemcpyHtoD_v2", &driver.to_device);
  find(library, "cuMemcpyDtoH_v2", &driver.to_host);
  must(driver.init(0), "cuInit");
  must(driver.retain(&context, 0), "cuDevicePrimaryCtxRetain");
  must(driver.make_current(context), "cuCtxSetCurrent");
}

static void *on_device(const void *data, size_t size) {
  void *memory;
  if (!driver.allocate) {
    memory = malloc(size + 1);
    if (memory && data) memcpy(memory, data, size);
    return memory;
  }
  must(driver.allocate(&memory, size + 1), "cuMemAlloc");
  if (data) must(driver.to_device(memory, data, size), "cuMemcpyHtoD");
  return memory;
}

static void to_host(void *to, const void *from, size_t size) {
  if (driver.allocate)
    must(driver.to_host(to, from, size), "cuMemcpyDtoH"); /* waits for the product */
  else
    memcpy(to, from, size);
}

/* ---- a matrix and its products ---- */

static int32_t rowptr[ROWS + 1], colind[2 * ROWS * MEAN];
static float values[2 * ROWS * MEAN], b[ROWS * WIDEST], c[ROWS * WIDEST];

static unsigned draw(void) {
  static unsigned state = 1;
  return (state = state * 1664525u + 1013904223u) >> 8;
}

static void make_matrix(void) {
  for (int i = 0; i < ROWS; i++) {
    rowptr[i + 1] = rowptr[i] + (int)(draw() % (2 * MEAN));
    for (int p = rowptr[i]; p < rowptr[i + 1]; p++) {
      colind[p] = (int32_t)(draw() % ROWS);
      values[p] = (float)(draw() % 1000) / 1000 - 0.5f;
    }
  }
  for (int i = 0; i < ROWS * WIDEST; i++) b[i] = (float)(draw() % 1000) / 1000 - 0.5f;
}

/* The largest error, relative to the sum of the terms' sizes. */
static double error_of(int n) {
  double worst = 0;
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0, size = 1e-30;
      for (int p = rowptr[i]; p < rowptr[i + 1]; p++) {
        const double term = (double)values[p] * b[(int64_t)colind[p] * n + j];
        sum += term;
        size += fabs(term);
      }
      const double error = fabs(c[(int64_t)i * n + j] - sum) / size;
      if (!(error <= worst)) worst = error;
    }
  return worst;
}

static int multiply(wlm_context *context, const wlm_matrix *matrix, int n) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  wlm_plan *plan;
  problem.n = n;
  check(wlm_plan_create(context, matrix, &problem, &plan));
  args.b = on_device(b, sizeof(float) * ROWS * (size_t)n);
  args.c = on_device(NULL, sizeof(float) * ROWS * (size_t)n);
  args.workspace_size = wlm_plan_workspace_size(plan);
  args.workspace = on_device(NULL, args.workspace_size);
  check(wlm_plan_execute(plan, &args));
  to_host(c, args.c, sizeof(float) * ROWS * (size_t)n);
  const double error = error_of(n);
  printf("n = %-3d %-50s error %.1e %s\n", n, wlm_plan_variant(plan), error, error < 1e-5 ? "correct" : "WRONG");
  wlm_plan_destroy(plan);
  return error < 1e-5;
}

static void print_log(void *user, wlm_log_level level, const char *message) {
  (void)user;
  (void)level;
  fprintf(stderr, "warploom: %s\n", message);
}

int main(int argc, char **argv) {
  static const int widths[] = {32, 64, 128};
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlm_context *context;
  wlm_matrix *matrix;
  wlm_csr csr = WLM_CSR_INIT;
  int correct = 1;
  options.device = argc > 1 ? argv[1] : "host";
  if (!strncmp(options.device, "cuda", 4)) open_driver();
  wlm_set_log(print_log, NULL, WLM_LOG_WARNING);
  check(wlm_context_create(&options, &context));
  printf("%s\n", wlm_context_device_name(context));
  make_matrix();
  csr.rows = csr.cols = ROWS, csr.nnz = rowptr[ROWS];
  csr.rowptr = on_device(rowptr, sizeof rowptr);
  csr.colind = on_device(colind, sizeof(int32_t) * (size_t)csr.nnz);
  csr.values = on_device(values, sizeof(float) * (size_t)csr.nnz);
  check(wlm_matrix_create(context, &csr, NULL, &matrix));
  for (int i = 0; i < 3; i++) correct &= multiply(context, matrix, widths[i]);
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context);
  return correct ? 0 : 1;
}
