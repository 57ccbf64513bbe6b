/* A context that records problems for which nothing similar was tuned, on the host device: which problems it records,
 * when they are written to the database, and that the synthetic matrices made from them have the recorded stats. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/csr/stats.h"
#include "core/problem/spec_key.h"
#include "core/synth/input.h"
#include "runtime/devices.h"
#include "support/command.h"
#include "support/stats.h"
#include "support/test.h"
#include "support/verified.h"
#include "tuner/upload.h"
#include "warploom/warploom_tune.h"

#define INPUT "synth:rows=500,d=6,cv=1.5"

typedef struct bench {
  char database[320];
  wlm_context *context;
  wlmi_csr_host csr;
  wlmi_upload upload;
} bench;

static void bench_make_on(bench *b, const char *database, int record) {
  snprintf(b->database, sizeof b->database, "%s", database);
  wlm_context_options options =
      CONTEXT_OPTIONS(.device = "host", .database = b->database, .system_database = "", .record = record);
  assert_status(WLM_OK, wlm_context_create(&options, &b->context));
  assert_status(WLM_OK, wlmi_input_read(INPUT, &b->csr));
  assert_status(WLM_OK, wlmi_upload_create(b->context, &b->csr, WLM_I32, &b->upload));
}

static void bench_make(bench *b, const char *name, int record) {
  char path[320];
  snprintf(path, sizeof path, "%s/%s", folder.path, name);
  bench_make_on(b, path, record);
}

static void bench_release(bench *b) {
  wlmi_upload_release(&b->upload);
  wlmi_csr_host_release(&b->csr);
  wlm_context_destroy(b->context);
}

static wlm_problem problem_of(int64_t n, wlm_reduce reduce) { return (wlm_problem)PROBLEM(.n = n, .reduce = reduce); }

static void make_plan(const bench *b, const wlm_problem *problem) {
  OWN(wlm_plan, plan, wlm_plan_create(b->context, b->upload.matrix, problem, &plan));
}

/* Loads the recorded problems of the bench's database; `list` may be NULL. */
static int64_t recorded(const bench *b, wlmi_recorded **list) {
  wlm_store *store;
  wlmi_recorded *found;
  wlm_status status = wlmi_store_open(b->database, WLMI_STORE_READ, &store);
  if (status == WLM_ERR_NOT_FOUND) return 0;
  assert_status(WLM_OK, status);
  GET(int64_t, count, wlmi_store_load_recorded(store, NULL, &found, &count));
  wlmi_store_close(store);
  if (list)
    *list = found;
  else
    wlmi_recorded_free(found, count);
  return count;
}

/* ---- which problems are recorded ---------------------------------------------------------------------- */

TEST(each_problem_is_written_once_at_the_end) {
  const wlm_problem sum = problem_of(8, WLM_SUM), wide = problem_of(64, WLM_SUM);
  wlm_problem max = problem_of(8, WLM_MAX), none = problem_of(0, WLM_SUM);
  max.transpose = 1;
  wlmi_recorded *list;
  bench b;
  bench_make(&b, "once.db", 1);
  for (int i = 0; i < 3; i++) {
    make_plan(&b, &sum);
    make_plan(&b, &wide);
    make_plan(&b, &max);
    make_plan(&b, &none);
  }
  assert_int_equal(recorded(&b, NULL), 0); /* creating a plan writes nothing */
  const wlm_stats stats = *wlm_matrix_stats(b.upload.matrix);
  bench_release(&b);
  const int64_t count = recorded(&b, &list);
  assert_int_equal(count, 3);
  for (int64_t i = 0; i < count; i++) {
    assert_int_equal(strncmp(list[i].device_class, "host/", 5), 0);
    GET(wlmi_spec, spec, wlmi_spec_from_key(list[i].problem, list[i].n, &spec));
    assert_int_equal(list[i].stats.nnz, stats.nnz);
    if (spec.problem.transpose)
      assert_true(list[i].stats.cv != stats.cv && spec.problem.reduce == WLM_MAX);
    else
      assert_memory_equal(&list[i].stats, &stats, sizeof stats);
  }
  wlmi_recorded_free(list, count);

  bench again; /* another context meets the same problems */
  bench_make(&again, "once.db", 1);
  make_plan(&again, &sum);
  bench_release(&again);
  assert_int_equal(recorded(&again, NULL), 3);
}

TEST(nothing_is_recorded_by_default) {
  const wlm_problem sum = problem_of(8, WLM_SUM);
  bench b;
  bench_make(&b, "off.db", 0);
  make_plan(&b, &sum);
  bench_release(&b);
  assert_int_equal(access(b.database, F_OK), -1);
}

/* Problems that were tuned, or have a named or pinned kernel, are not recorded; those with another N are. */
TEST(only_untuned_problems_are_recorded) {
  const wlm_problem sum = problem_of(12, WLM_SUM), beside = problem_of(14, WLM_SUM), far = problem_of(64, WLM_SUM);
  wlm_problem pinned = problem_of(200, WLM_SUM);
  wlm_tune_options tune = TUNE_OPTIONS(.min_sample_seconds = 1e-5, .samples = 3);
  bench b;
  wlmi_recorded *list;
  char hex[WLMI_HASH_HEX], key[WLMI_SPEC_KEY];
  HELD(wlmi_text) device_class = {0};
  wlmi_device_record device;
  bench_make(&b, "near.db", 1);
  GET(wlm_plan *, plan, wlm_plan_create_variant(b.context, b.upload.matrix, &sum, "host_row/rows=16,tile=16", &plan));
  wlm_plan_destroy(plan);
  assert_status(WLM_OK, wlm_tune(b.context, b.upload.matrix, &sum, NULL, &tune));
  device = wlmi_device_record_of(wlmi_context_device(b.context));
  wlmi_device_class(&device, &device_class);
  const wlm_stats stats = test_stats_of(&b.csr);
  wlmi_hash_to_hex((wlmi_hash){stats.fingerprint[0], stats.fingerprint[1]}, hex);
  GET(wlmi_spec, spec, wlmi_context_spec(b.context, b.upload.matrix, &pinned, &spec));
  wlmi_spec_key(&spec, key);
  GET(wlm_store *, store, wlmi_store_open(b.database, WLMI_STORE_WRITE, &store));
  const wlmi_pin_record pin = {device_class.data, hex, key, pinned.n, "host_row/rows=16,tile=32"};
  assert_status(WLM_OK, wlmi_store_pin(store, &pin));
  wlmi_store_close(store);
  assert_status(WLM_OK, wlm_context_refresh(b.context));
  make_plan(&b, &sum);
  make_plan(&b, &beside);
  make_plan(&b, &pinned);
  make_plan(&b, &far);
  bench_release(&b);
  const int64_t count = recorded(&b, &list);
  assert_int_equal(count, 2);
  assert_int_equal(list[0].n + list[1].n, 14 + 64);
  wlmi_recorded_free(list, count);
}

static wlm_status make_plans_of(bench *b) {
  wlm_status status;
  for (int64_t n = 1; n <= 40; n++) {
    const wlm_problem problem = problem_of(n, WLM_SUM);
    wlmi_decision decision;
    wlm_plan *plan;
    WLM_TRY(wlmi_context_choose(b->context, b->upload.matrix, &problem, &decision));
    if (n % 8) continue; /* only every eighth N, because each one compiles another kernel */
    WLM_TRY(wlm_plan_create(b->context, b->upload.matrix, &problem, &plan));
    wlm_plan_destroy(plan);
    WLM_TRY(wlmi_context_write_recorded(b->context));
  }
done:
  return status;
}

static void *make_plans(void *user) {
  if (make_plans_of(user) == WLM_OK) return NULL;
  fprintf(stderr, "%s\n", wlm_error_detail());
  return user;
}

TEST(many_threads_record_and_write) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  bench b;
  bench_make(&b, "threads.db", 1);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, make_plans, &b), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  assert_int_equal(recorded(&b, NULL), 5);
  bench_release(&b);
  assert_int_equal(recorded(&b, NULL), 5);
}

static int open_files(const char *path) {
  char name[64], target[512];
  int count = 0;
  for (int file = 0; file < 256; file++) {
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(name, target, sizeof target - 1);
    if (length < 0) continue;
    target[length] = 0;
    count += !strcmp(target, path);
  }
  return count;
}

static void *write_recorded(void *user) {
  const bench *b = user;
  return wlmi_context_write_recorded(b->context) == WLM_OK ? NULL : user;
}

/* While another connection locks the database, one thread waits to write; other threads create plans and record
 * problems meanwhile. */
TEST(plans_do_not_wait_for_the_database) {
  const wlm_problem first = problem_of(8, WLM_SUM), second = problem_of(16, WLM_SUM), third = problem_of(24, WLM_SUM);
  sqlite3 *database;
  pthread_t writer;
  void *failed;
  bench b;
  bench_make(&b, "held.db", 1);
  make_plan(&b, &first);
  assert_status(WLM_OK, wlmi_context_write_recorded(b.context));
  make_plan(&b, &second);
  assert_int_equal(sqlite3_open(b.database, &database), SQLITE_OK);
  sqlite3_busy_timeout(database, 60000); /* waits at COMMIT until the writer has checked the tables */
  assert_int_equal(sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
  const int held = open_files(b.database);
  assert_int_equal(pthread_create(&writer, NULL, write_recorded, &b), 0);
  while (open_files(b.database) == held) sched_yield();
  make_plan(&b, &second); /* the writer already has this problem */
  make_plan(&b, &third);
  assert_int_equal(sqlite3_exec(database, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_close(database), SQLITE_OK);
  assert_int_equal(pthread_join(writer, &failed), 0);
  assert_null(failed); /* the writer gives up only after a minute */
  assert_int_equal(recorded(&b, NULL), 2);
  bench_release(&b);
  assert_int_equal(recorded(&b, NULL), 3);
}

/* ---- where problems are written ----------------------------------------------------------------------- */

static char logged[1024];
static void keep_log(void *user, wlm_log_level level, const char *message) {
  (void)user, (void)level;
  strncat(logged, message, sizeof logged - strlen(logged) - 1);
}

TEST(an_unwritable_database_is_reported) {
  const wlm_problem sum = problem_of(8, WLM_SUM);
  bench b;
  wlm_set_log(keep_log, NULL, WLM_LOG_WARNING);
  *logged = 0;
  bench_make_on(&b, "", 1);
  assert_contains(logged, "nothing is recorded");
  make_plan(&b, &sum);
  *logged = 0;
  bench_release(&b);
  assert_string_equal(logged, "");

  bench_make_on(&b, folder.path, 1); /* a folder instead of a database, which cannot be written */
  make_plan(&b, &sum);
  *logged = 0;
  assert_status(WLM_ERR_DATABASE, wlmi_context_write_recorded(b.context));
  bench_release(&b);
  assert_contains(logged, "the recorded problems are lost");

  char path[340]; /* problems stay in memory until the database can be written */
  snprintf(path, sizeof path, "%s/later.db", folder.path);
  assert_int_equal(mkdir(path, 0700), 0);
  bench_make_on(&b, path, 1);
  make_plan(&b, &sum);
  assert_status(WLM_ERR_DATABASE, wlmi_context_write_recorded(b.context));
  assert_int_equal(rmdir(path), 0);
  assert_status(WLM_OK, wlmi_context_write_recorded(b.context));
  assert_int_equal(recorded(&b, NULL), 1);
  bench_release(&b);
  wlm_set_log(NULL, NULL, WLM_LOG_ERROR);
}

TEST(online_tuning_writes_at_its_close) {
  const wlm_problem sum = problem_of(8, WLM_SUM);
  wlm_online_options options = ONLINE_OPTIONS(.challengers = 0);
  bench b;
  bench_make(&b, "online.db", 1);
  GET(wlm_plan *, plan, wlm_plan_create_online(b.context, b.upload.matrix, &sum, &options, &plan));
  assert_int_equal(recorded(&b, NULL), 0);
  assert_status(WLM_OK, wlm_plan_online_close(plan));
  assert_int_equal(recorded(&b, NULL), 1);
  wlm_plan_destroy(plan);
  bench_release(&b);
  assert_int_equal(recorded(&b, NULL), 1);
}

/* Runs in a new process, because OpenMP's threads do not survive a fork. */
static int note_and_die(const char *database) {
  const wlm_problem sum = problem_of(8, WLM_SUM);
  bench b;
  bench_make_on(&b, database, 1);
  make_plan(&b, &sum);
  abort();
}

TEST(killed_before_its_end) {
  bench b;
  int how;
  snprintf(b.database, sizeof b.database, "%s/killed.db", folder.path);
  fflush(NULL);
  const pid_t child = fork();
  if (!child) {
    execl("/proc/self/exe", "test_record", b.database, (char *)NULL);
    _exit(1);
  }
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
  assert_int_equal(access(b.database, F_OK), -1);
}

/* ---- synthetic matrices for recorded problems ----------------------------------------------------------- */

/* The synthetic matrix has the recorded stats, in about the same bucket. */
static void assert_alike(const wlm_stats *wanted, double cv_tolerance) {
  char name[WLMI_STAND_IN_NAME];
  wlm_stats got;
  wlmi_stand_in_name(wanted, name);
  HOLD(wlmi_csr_host, csr, wlmi_input_read(name, &csr));
  got = test_stats_of(&csr);
  assert_int_equal(got.rows, wanted->rows);
  assert_int_equal(got.cols, wanted->cols);
  if (got.nnz != wanted->nnz || got.longest != wanted->longest || fabs(got.cv - wanted->cv) > cv_tolerance * wanted->cv)
    fail_msg("%s: nnz %lld, longest %lld, cv %g", name, (long long)got.nnz, (long long)got.longest, got.cv);
  const wlmi_point here = wlmi_point_of(wanted, 32), there = wlmi_point_of(&got, 32);
  assert_true(wlmi_point_distance(&here, &there) < 0.3);
}

TEST(synthetic_matrices_have_the_stats) {
  static const char *const inputs[] = {"twin:arxiv,scale=0.1",
                                       "twin:youtube,scale=0.02",
                                       "twin:roadnet-ca,scale=0.01",
                                       "twin:web-google,scale=0.02",
                                       "twin:proteins,scale=0.02",
                                       "synth:rows=3000,cols=500,d=7.5,cv=3",
                                       "synth:rows=200,cols=90000,d=300.25,cv=0.4",
                                       "uniform:rows=777,d=13"};
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
    wlm_stats stats;
    HOLD(wlmi_csr_host, csr, wlmi_input_read(inputs[i], &csr));
    stats = test_stats_of(&csr);
    assert_alike(&stats, 0.1);
  }
}

/* Stats that no generated matrix can have: denser than half, rows longer than the number of columns, empty. The
 * generator makes a similar matrix. */
TEST(synthetic_matrices_for_impossible_stats) {
  const wlm_stats odd[] = {
      {.rows = 25, .cols = 500, .nnz = 25 * 420, .longest = 500, .cv = 0.1},
      {.rows = 10, .cols = 4, .nnz = 1000, .longest = 300, .cv = 0.8},
      {.rows = 1, .cols = 1, .nnz = 1, .longest = 1},
      {.rows = 3, .cols = 100, .nnz = 60, .longest = 58, .cv = 1.3},
      {.rows = 100, .cols = 100, .nnz = 1, .longest = 1, .cv = 9.9},
  };
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    char name[WLMI_STAND_IN_NAME];
    wlmi_stand_in_name(&odd[i], name);
    HOLD(wlmi_csr_host, csr, wlmi_input_read(name, &csr));
    assert_int_equal(csr.rows, odd[i].rows);
    assert_int_equal(csr.cols, odd[i].cols);
    assert_true(csr.nnz > 0);
    if (i == 0) assert_int_equal(csr.nnz, odd[0].nnz); /* 420 a row, which a uniform matrix can have */
  }
}

/* The synthetic matrix has the problem's types. For a transposed problem its transpose has the stats. */
TEST(synthetic_matrices_have_the_types) {
  static const char *const keys[] = {
      "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
      "op=copy_b.max,dense=f32,rowptr=i64,colind=i64,values=none,sample=none",
      "op=mul.sum,dense=f16,rowptr=i32,colind=i64,values=f16,sample=none",
      "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,transpose=1",
  };
  const wlm_stats wanted = {sizeof wanted, 300, 700, 2400, 40, 0, 0, 0, 8.0, 1.0, 0.1, {1, 2}};
  MAKE(bench, b, "types.db", 0);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    wlmi_spec spec, made;
    char key[WLMI_SPEC_KEY];
    assert_status(WLM_OK, wlmi_spec_from_key(keys[i], 8, &spec));
    HOLD(wlmi_upload, upload, wlmi_stand_in_make(b.context, &wanted, &spec, &upload));
    assert_status(WLM_OK, wlmi_context_spec(b.context, upload.matrix, &spec.problem, &made));
    wlmi_spec_key(&made, key);
    assert_string_equal(key, keys[i]);
    GET(wlmi_matrix_view, view, wlmi_matrix_see(upload.matrix, &spec.problem, &view));
    assert_true(view.stats->rows == 300 && view.stats->cols == 700 && view.stats->nnz == 2400);
    assert_int_equal(view.stats->longest, 40);

    /* products with the matrix are correct */
    HOLD(wlmi_operands, operands, wlmi_operands_create(b.context, upload.matrix, &spec.problem, NULL, 1, &operands));
    OWN(wlm_plan, plan, wlm_plan_create(b.context, upload.matrix, &spec.problem, &plan));
    OWN(wlmi_verifier, verifier, wlmi_verifier_create(&operands, 1, &verifier));
    GET(double, error, verify_plan(&operands, verifier, plan, &error));
  }
}

GROUP(home_begin, folder_end)

int main(int argc, char **argv) {
  if (argc == 2) return note_and_die(argv[1]);
  return test_run();
}
