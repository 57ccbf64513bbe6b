/* A fork while another thread is inside the library: in the child each call works or fails at once. The other thread
 * is stopped in each of its allocations in turn, some of which it makes with locks held, and with each lock in turn. */
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/context_state.h"
#include "support/calls.h"
#include "support/child.h"
#include "support/folder.h"
#include "support/test.h"

enum { ROWS = 40, DEGREE = 3, N = 6 };

static int32_t rowptr[ROWS + 1], colind[ROWS * DEGREE];
static float values[ROWS * DEGREE], b[ROWS * N], expected[ROWS * N], transposed[ROWS * N];
static wlm_csr csr =
    CSR(.rows = ROWS, .cols = ROWS, .nnz = ROWS * DEGREE, .rowptr = rowptr, .colind = colind, .values = values);

static void multiply(const float *from, float *to, int transpose) {
  for (int r = 0; r < ROWS; r++)
    for (int p = rowptr[r]; p < rowptr[r + 1]; p++)
      for (int j = 0; j < N; j++)
        to[(transpose ? colind[p] : r) * N + j] += values[p] * from[(transpose ? r : colind[p]) * N + j];
}

static int begin(void **state) {
  for (int r = 0; r < ROWS; r++) rowptr[r + 1] = (r + 1) * DEGREE;
  for (int p = 0; p < ROWS * DEGREE; p++) colind[p] = (7 * p + p / DEGREE) % ROWS, values[p] = (float)(p % 5 - 2);
  for (int i = 0; i < ROWS * N; i++) b[i] = (float)(i % 11 - 5);
  multiply(b, expected, 0);
  multiply(b, transposed, 1);
  return folder_begin(state);
}

static wlm_problem problem_of(int64_t n, int transpose) {
  return (wlm_problem)PROBLEM(.n = n, .transpose = transpose, .policy.expected_calls = 100);
}

/* ---- a thread that stops ------------------------------------------------------------------------------------ */

/* Counts the allocations of one thread, and stops it in one of them. Lua's, which are many, are counted in hundreds. */
static _Thread_local int is_counted;
static double allocations, stop_at;
static sem_t stopped, go_on;

static void stop_here(void) {
  sem_post(&stopped);
  while (sem_wait(&go_on)) continue;
}

static void count(double weight) {
  if (!is_counted) return;
  const double before = allocations;
  allocations += weight;
  if (before < stop_at && allocations >= stop_at) stop_here();
}

static void *counted_allocate(void *user, size_t size) {
  (void)user;
  count(1);
  return malloc(size);
}

static void *counted_reallocate(void *user, void *old, size_t size) {
  (void)user;
  count(0.01);
  return realloc(old, size);
}

static void release(void *user, void *old) {
  (void)user;
  free(old);
}

typedef struct scene {
  wlm_context *context;
  wlm_matrix *matrix; /* has neither a fingerprint nor an A^T when the other thread begins */
  wlm_status status;
  void (*lock)(struct scene *scene);
  void (*unlock)(struct scene *scene);
  wlmi_lent lent;
} scene;

static wlm_status run_plan(wlm_context *context, const wlm_matrix *matrix, int64_t n, int transpose,
                           const float *right) {
  const wlm_problem problem = problem_of(n, transpose);
  float c[ROWS * N];
  _Alignas(16) char workspace[1 << 14];
  OWNED(wlm_plan) *plan = NULL;
  wlm_status status = wlm_plan_create(context, matrix, &problem, &plan);
  if (status == WLM_OK) status = test_execute(plan, b, c, workspace);
  if (status == WLM_OK && right && memcmp(c, right, sizeof c)) status = WLM_ERR_MISMATCH;
  return status;
}

static wlm_status run_once(wlm_context *context) {
  const wlm_problem problem = problem_of(N, 0);
  float c[ROWS * N];
  const wlm_status status = test_spmm(context, &csr, &problem, b, c);
  return status == WLM_OK && memcmp(c, expected, sizeof c) ? WLM_ERR_MISMATCH : status;
}

static void *work(void *user) {
  scene *s = user;
  is_counted = 1;
  s->status = run_plan(s->context, s->matrix, N, 1, transposed);
  if (s->status == WLM_OK) s->status = wlmi_matrix_fingerprint(s->matrix);
  if (s->status == WLM_OK) s->status = run_plan(s->context, s->matrix, N - 1, 0, NULL); /* from the kernel cache */
  if (s->status == WLM_OK) s->status = wlm_context_refresh(s->context);
  is_counted = 0;
  if (allocations < stop_at) sem_post(&stopped);
  return NULL;
}

static void *hold_a_lock(void *user) {
  scene *s = user;
  s->lock(s);
  stop_here();
  s->unlock(s);
  return NULL;
}

/* ---- the fork ------------------------------------------------------------------------------------------------ */

static int all_others_sleep(void) {
  char path[300], line[300];
  int awake = 0;
  DIR *tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  for (struct dirent *entry; (entry = readdir(tasks));) {
    if (*entry->d_name == '.' || atoi(entry->d_name) == getpid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
    FILE *file = fopen(path, "r");
    if (!file) continue; /* it has ended */
    const char *name_end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    awake += name_end && name_end[2] != 'S';
    fclose(file);
  }
  closedir(tasks);
  return !awake;
}

/* Forks from the first thread. OpenMP ends threads of a team that shrank, or whose thread was joined, in their own
 * time. AddressSanitizer takes locks of its own as they end, and a fork copies those held: the child would hang in
 * `free`, in which this library has no part. So the others must sleep first. */
static pid_t fork_in_silence(void) {
  fflush(NULL);
  for (int look = 0; look < 10000 && !all_others_sleep(); look++) usleep(1000);
  const pid_t child = fork();
  assert_true(child >= 0);
  return child;
}

/* ---- the child --------------------------------------------------------------------------------------------- */

static int failed; /* calls that gave an error */

static int is_allowed(wlm_status status) {
  failed += status != WLM_OK;
  return status == WLM_OK || (status == WLM_ERR_UNSUPPORTED && strstr(wlm_error_detail(), "forked"));
}

/* Returns the number of the call that went wrong, or 100 if some gave the error that a child may get, or 0. */
static int use_in_child(scene *s) {
  alarm(30); /* ends the child if it hangs */
  wlm_matrix *own;
  if (!is_allowed(run_once(s->context))) return 1;
  if (!is_allowed(run_plan(s->context, s->matrix, N, 0, expected))) return 2;
  if (!is_allowed(run_plan(s->context, s->matrix, N, 1, transposed))) return 3;
  if (wlm_matrix_create(s->context, &csr, NULL, &own) != WLM_OK) return 4;
  if (!is_allowed(run_plan(s->context, own, N, 0, expected))) return 5;
  wlm_matrix_destroy(own);
  wlm_matrix_destroy(s->matrix);
  wlm_context_destroy(s->context);
  return failed ? 100 : 0;
}

static int fork_and_use(scene *s) {
  int how;
  const pid_t child = fork_in_silence();
  if (!child) child_exit(use_in_child(s));
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how)); /* otherwise it hung */
  const int result = WEXITSTATUS(how);
  assert_true(result == 0 || result == 100);
  return result;
}

/* A context whose kernels for problem_of(N, ...) are loaded. */
static void open_scene(scene *s) {
  *s = (scene){.status = WLM_OK};
  const char *database = in_folder("tuned.db"), *cache = in_folder("kernels.db");
  wlm_context_options options = BARE_OPTIONS(.device = "host", .database = database, .kernel_cache = cache);
  assert_status(WLM_OK, wlm_context_create(&options, &s->context));
  GET(wlm_matrix *, other, wlm_matrix_create(s->context, &csr, NULL, &other));
  assert_status(WLM_OK, run_plan(s->context, other, N, 0, expected));
  assert_status(WLM_OK, run_plan(s->context, other, N, 1, transposed));
  assert_status(WLM_OK, run_once(s->context));
  wlm_matrix_destroy(other);
  assert_status(WLM_OK, wlm_matrix_create(s->context, &csr, NULL, &s->matrix));
  sem_init(&stopped, 0, 0);
  sem_init(&go_on, 0, 0);
}

/* Forks while the thread is stopped. Returns what fork_and_use does. */
static int play(scene *s, void *(*function)(void *)) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, function, s), 0);
  while (sem_wait(&stopped)) continue;
  const int result = fork_and_use(s);
  sem_post(&go_on);
  pthread_join(thread, NULL);
  assert_status(WLM_OK, s->status);
  assert_status(WLM_OK, run_plan(s->context, s->matrix, N, 0, expected)); /* the parent goes on */
  wlm_matrix_destroy(s->matrix);
  wlm_context_destroy(s->context);
  return result;
}

TEST(in_each_allocation) {
  static const wlm_allocator counted = {counted_allocate, counted_reallocate, release, NULL};
  scene s;
  wlm_set_allocator(&counted);
  do {
    open_scene(&s);
    allocations = 0;
    stop_at++;
    play(&s, work);
  } while (allocations >= stop_at);
  wlm_set_allocator(NULL);
  assert_true(stop_at > 10);
}

/* ---- locks that are held without an allocation ----------------------------------------------------------------- */

#define LOCK(name, lock_it, unlock_it, what)               \
  static void lock_##name(scene *s) { lock_it(&s->what); } \
  static void unlock_##name(scene *s) { unlock_it(&s->what); }
LOCK(snapshot, pthread_mutex_lock, pthread_mutex_unlock, context->snapshot_lock)
LOCK(kernels, pthread_mutex_lock, pthread_mutex_unlock, context->kernel_lock)
LOCK(decisions, pthread_rwlock_wrlock, pthread_rwlock_unlock, context->decisions.lock)
LOCK(reading, pthread_rwlock_rdlock, pthread_rwlock_unlock, context->decisions.lock)
LOCK(workspaces, pthread_rwlock_wrlock, pthread_rwlock_unlock, context->workspaces.lock)
LOCK(background, pthread_mutex_lock, pthread_mutex_unlock, context->background.lock)
LOCK(recorder, pthread_mutex_lock, pthread_mutex_unlock, context->recorder.lock)
LOCK(matrix, pthread_mutex_lock, pthread_mutex_unlock, matrix->lock)

/* As in a product that needs a workspace. */
static void lock_turn(scene *s) {
  s->status = wlmi_workspace_take(&s->context->workspaces, s->context->device, NULL, 1000, &s->lent);
}
static void unlock_turn(scene *s) { wlmi_workspace_give(&s->context->workspaces, s->context->device, NULL, &s->lent); }

TEST(with_each_lock) {
  static const struct {
    void (*lock)(scene *s), (*unlock)(scene *s);
    int refused; /* the child gets an error */
  } locks[] = {{lock_snapshot, unlock_snapshot, 0},
               {lock_kernels, unlock_kernels, 0},
               {lock_decisions, unlock_decisions, 0},
               {lock_reading, unlock_reading, 0},
               {lock_workspaces, unlock_workspaces, 0},
               {lock_background, unlock_background, 0},
               {lock_recorder, unlock_recorder, 0},
               {lock_matrix, unlock_matrix, 1},
               {lock_turn, unlock_turn, 0}};
  for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
    scene s;
    open_scene(&s);
    s.lock = locks[i].lock;
    s.unlock = locks[i].unlock;
    assert_int_equal(play(&s, hold_a_lock), locks[i].refused ? 100 : 0);
  }
}

/* The child takes the workspace that the other thread has in the parent. */
TEST(a_workspace_in_use) {
  scene s;
  pthread_t thread;
  wlmi_lent lent;
  int how;
  open_scene(&s);
  s.lock = lock_turn;
  s.unlock = unlock_turn;
  assert_int_equal(pthread_create(&thread, NULL, hold_a_lock, &s), 0);
  while (sem_wait(&stopped)) continue;
  const pid_t child = fork_in_silence();
  if (!child) {
    alarm(30);
    const wlm_status status = wlmi_workspace_take(&s.context->workspaces, s.context->device, NULL, 1000, &lent);
    if (status == WLM_OK) memset(lent.memory, 1, lent.size);
    child_exit(status == WLM_OK && lent.memory != s.lent.memory ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how) && !WEXITSTATUS(how));
  sem_post(&go_on);
  pthread_join(thread, NULL);
  wlm_matrix_destroy(s.matrix);
  wlm_context_destroy(s.context);
}

GROUP(begin, folder_end)
