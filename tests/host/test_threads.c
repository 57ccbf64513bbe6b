/* The threads of the host device: a small product runs on the calling thread only, and a child of fork can compute. */
#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <omp.h>

#include "runtime/host/threads.h"
#include "support/bare_host.h"
#include "support/calls.h"
#include "support/child.h"
#include "support/test.h"

enum { MOST_ROWS = 4000, DEGREE = 8, N = 32 };

typedef struct product {
  int32_t *rowptr, *colind;
  float *values, *b, *c;
  wlm_csr csr;
  wlm_matrix *matrix;
  wlm_problem problem;
  wlm_plan *plan;
  void *workspace;
} product;

static void *array(size_t count, size_t each) {
  void *made = calloc(count, each);
  assert_non_null(made);
  return made;
}

/* A square matrix with `degree` non-zeros in each row. */
static void product_make(product *p, int rows, int degree) {
  *p = (product){.csr = WLM_CSR_INIT, .problem = WLM_PROBLEM_INIT};
  p->rowptr = array((size_t)rows + 1, sizeof *p->rowptr);
  p->colind = array((size_t)rows * (size_t)degree, sizeof *p->colind);
  p->values = array((size_t)rows * (size_t)degree, sizeof *p->values);
  p->b = array((size_t)rows * N, sizeof *p->b);
  p->c = array((size_t)rows * N, sizeof *p->c);
  for (int i = 0; i < rows; i++) p->rowptr[i + 1] = (i + 1) * degree;
  for (int i = 0; i < rows * degree; i++) p->colind[i] = (int)((7 * (int64_t)i) % rows), p->values[i] = (float)(i % 5);
  for (int i = 0; i < rows * N; i++) p->b[i] = (float)(i % 11);
  p->csr.rows = p->csr.cols = rows;
  p->csr.nnz = (int64_t)rows * degree;
  p->csr.rowptr = p->rowptr;
  p->csr.colind = p->colind;
  p->csr.values = p->values;
  p->problem.n = N;
  assert_status(WLM_OK, wlm_matrix_create(bare_host, &p->csr, NULL, &p->matrix));
  assert_status(WLM_OK, wlm_plan_create(bare_host, p->matrix, &p->problem, &p->plan));
  p->workspace = array(wlm_plan_workspace_size(p->plan) + 1, 1);
}

static wlm_status product_run(const product *p) { return test_execute(p->plan, p->b, p->c, p->workspace); }

static void product_release(product *p) {
  wlm_plan_destroy(p->plan);
  wlm_matrix_destroy(p->matrix);
  free(p->rowptr);
  free(p->colind);
  free(p->values);
  free(p->b);
  free(p->c);
  free(p->workspace);
}

static int threads_of_this_process(void) {
  DIR *folder = opendir("/proc/self/task");
  int count = 0;
  assert_non_null(folder);
  for (const struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

/* Runs in a process that has not used OpenMP yet: OpenMP creates its threads at the first parallel region and keeps
 * them. */
TEST(small_products_run_alone) {
  HELD(product) small, large;
  omp_set_num_threads(3);
  const int before = threads_of_this_process();
  product_make(&small, 3, 2);
  assert_status(WLM_OK, product_run(&small));
  assert_int_equal(threads_of_this_process(), before);
  product_make(&large, MOST_ROWS, DEGREE);
  assert_status(WLM_OK, product_run(&large));
  assert_int_equal(threads_of_this_process(), before + 2);
}

static int threads_of(int64_t rows) {
  return wlmi_host_threads(&(struct wlm_args){.rows = rows, .nnz = 7 * rows, .n = N}, 1);
}

/* OpenMP's number or 1, never one between or above: a team of another size makes libgomp create and end threads. */
TEST(crowding_raises_the_work_to_share) {
  const struct {
    int64_t rows;
    int calm, crowded;
  } cases[] = {{10, 1, 1}, {4000, 3, 1}, {100000, 3, 1}, {4000000, 3, 3}};
  omp_set_num_threads(3);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    *wlmi_host_crowding() = (wlmi_crowding){0};
    assert_int_equal(threads_of(cases[i].rows), cases[i].calm);
    *wlmi_host_crowding() = (wlmi_crowding){.until = INFINITY};
    assert_int_equal(threads_of(cases[i].rows), cases[i].crowded);
  }
  *wlmi_host_crowding() = (wlmi_crowding){0};
}

static int compute_in_child(product *p, const float *expected, size_t size) {
  alarm(20); /* ends the child if it hangs */
  memset(p->c, 0xff, size);
  if (product_run(p) != WLM_OK || memcmp(p->c, expected, size)) return 1;
  memset(p->c, 0xff, size);
  if (test_spmm(bare_host, &p->csr, &p->problem, p->b, p->c) != WLM_OK) return 2;
  return memcmp(p->c, expected, size) ? 3 : 0;
}

TEST(a_forked_child_computes) {
  int how;
  omp_set_num_threads(3);
  MAKE(product, p, MOST_ROWS, DEGREE);
  assert_status(WLM_OK, product_run(&p));
  const size_t size = sizeof *p.c * MOST_ROWS * N;
  FREED float *expected = array(size, 1);
  memcpy(expected, p.c, size);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) _exit(compute_in_child(&p, expected, size));
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
  memset(p.c, 0xff, size); /* the parent can still compute */
  assert_status(WLM_OK, product_run(&p));
  assert_memory_equal(p.c, expected, size);
}

/* ---- a user who may have no more threads ----------------------------------------------------------------- */

enum { RIGHT, WRONG, NO_LIMIT, NOBODY = 65534 };

static void *do_nothing(void *user) { return user; }

/* Returns 1 if this process cannot create a thread any more. The limit does not hold for root. */
static int forbid_threads(void) {
  const struct rlimit one = {1, 1};
  pthread_t thread;
  if (setrlimit(RLIMIT_NPROC, &one)) return 0;
  if (pthread_create(&thread, NULL, do_nothing, NULL)) return 1;
  pthread_join(thread, NULL);
  return 0;
}

/* In a process that has used neither OpenMP nor a device, because OpenMP keeps the threads that it has and a child of
 * fork uses none. A kernel is compiled before the limit is set: the compiler is a process, too. */
static int compute_without_threads(void) {
  product p;
  if (!geteuid() && (setgid(NOBODY) || setuid(NOBODY))) return NO_LIMIT;
  if (bare_host_begin(NULL)) return WRONG;
  omp_set_num_threads(3);
  product_make(&p, MOST_ROWS, DEGREE);
  omp_set_num_threads(1);
  if (product_run(&p) != WLM_OK) return WRONG;
  const size_t size = sizeof *p.c * MOST_ROWS * N;
  float *expected = array(size, 1);
  memcpy(expected, p.c, size);
  omp_set_num_threads(3);
  if (!forbid_threads()) return NO_LIMIT;
  for (int call = 0; call < 3; call++) {
    memset(p.c, 0xff, size);
    if (product_run(&p) != WLM_OK || memcmp(p.c, expected, size)) return WRONG;
  }
  free(expected);
  product_release(&p);
  return bare_host_end(NULL) || threads_of_this_process() != 1 ? WRONG : RIGHT;
}

static int limited; /* how the process ended that computed without threads */

static void run_limited(void) {
  fflush(NULL);
  const pid_t child = fork();
  if (!child) {
    alarm(60);
    const int result = compute_without_threads();
    if (result == RIGHT) child_exit(100); /* libgomp ends a process with 1 */
    child_exit(result == NO_LIMIT ? 101 : 102);
  }
  if (child < 0 || waitpid(child, &limited, 0) != child) limited = -1;
}

TEST(a_limit_on_threads_makes_products_slower_only) {
  assert_true(limited >= 0 && WIFEXITED(limited));
  if (WEXITSTATUS(limited) == 101) test_missing("limits", "limit on threads", "RLIMIT_NPROC does not hold here");
  assert_int_equal(WEXITSTATUS(limited), 100);
}

GROUP(bare_host_begin, bare_host_end)

int main(void) {
  run_limited();
  return test_run();
}
