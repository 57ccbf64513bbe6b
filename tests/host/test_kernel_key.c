/* Kernels on the host device: a compiled one is cached once it was loaded and reused until the compiler's file changes;
 * those that are not used are unloaded. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/context_state.h"
#include "support/command.h"
#include "support/test.h"

static char compiled[320]; /* gets a line for each run of the compiler, except for --version */

/* Writes a compiler script. `remark` changes the file, but not the version that it prints. */
static void write_compiler(const char *name, const char *remark) {
  char text[1024], path[320];
  snprintf(path, sizeof path, "%s/%s", folder.path, name);
  snprintf(text, sizeof text, "#!/bin/sh\n# %s\n[ \"$1\" = --version ] || echo run >>'%s'\nexec cc \"$@\"\n", remark,
           compiled);
  write_whole(path, text, strlen(text));
  assert_int_equal(chmod(path, 0700), 0);
}

static void set_time(const char *name, time_t seconds) {
  char path[320];
  const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
  snprintf(path, sizeof path, "%s/%s", folder.path, name);
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void use_compiler(const char *name) {
  char path[320];
  snprintf(path, sizeof path, "%s/%s", folder.path, name);
  setenv("WARPLOOM_CC", path, 1);
}

static wlm_context *open_context(void) {
  const char *cache = in_folder("kernels.db");
  wlm_context_options options = BARE_OPTIONS(.device = "host", .kernel_cache = cache);
  GET(wlm_context *, context, wlm_context_create(&options, &context));
  return context;
}

/* One element, 1. */
static wlm_csr smallest_matrix(void) {
  static const int32_t rowptr[] = {0, 1}, colind[] = {0};
  static const float values[] = {1};
  return (wlm_csr)CSR(.rows = 1, .cols = 1, .nnz = 1, .rowptr = rowptr, .colind = colind, .values = values);
}

static int64_t count_runs(void) {
  FREED char *log = text_of(compiled);
  const int64_t runs = count_lines(log, "run");
  return runs;
}

/* Creates a plan in a new context with the same kernel cache; returns how often the compiler has run so far. */
static int64_t runs_after_a_plan(char text[96]) {
  const wlm_csr csr = smallest_matrix();
  wlm_context *const context = open_context();
  wlm_problem problem = PROBLEM(.n = 4);
  GET(wlm_matrix *, matrix, wlm_matrix_create(context, &csr, NULL, &matrix));
  GET(wlm_plan *, plan, wlm_plan_create(context, matrix, &problem, &plan));
  snprintf(text, 96, "%s", wlmi_context_device(context)->info.compiler);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context);
  return count_runs();
}

TEST(another_compiler_compiles_again) {
  char first[96], text[96];
  snprintf(compiled, sizeof compiled, "%s/compiled", folder.path);
  write_whole(compiled, "", 0);
  write_compiler("cc-one", "a");
  set_time("cc-one", 1000000000);
  use_compiler("cc-one");
  assert_int_equal(runs_after_a_plan(first), 1);
  assert_int_equal(runs_after_a_plan(text), 1); /* the kernel comes from the cache */

  set_time("cc-one", 1000000001); /* an update of the compiler to a file with the same size and version text */
  assert_int_equal(runs_after_a_plan(text), 2);
  assert_string_equal(text, first);

  write_compiler("cc-one", "longer");
  set_time("cc-one", 1000000001);
  assert_int_equal(runs_after_a_plan(text), 3);

  write_compiler("cc-two", "longer"); /* a compiler with another path */
  set_time("cc-two", 1000000001);
  use_compiler("cc-two");
  assert_int_equal(runs_after_a_plan(text), 4);
  assert_int_equal(runs_after_a_plan(text), 4);
  assert_string_equal(text, first);

  char path[sizeof folder.path + 300]; /* the same compiler, found by its name in PATH */
  snprintf(path, sizeof path, "%s:%s", folder.path, getenv("PATH"));
  setenv("PATH", path, 1);
  setenv("WARPLOOM_CC", "cc-two", 1);
  assert_int_equal(runs_after_a_plan(text), 4);
}

/* ---- a kernel that does not load ------------------------------------------------------------------------- */

static int64_t warnings;

static void count_warnings(void *user, wlm_log_level level, const char *message) {
  (void)user;
  (void)level;
  if (strstr(message, "is compiled again")) warnings++;
}

/* Replaces every kernel of the cache by bytes with a correct hash that do not load: like a kernel of another machine,
 * or half of the kernel. */
static void spoil_cache(int by_half) {
  static const char other[] = "no shared object";
  sqlite3 *db;
  sqlite3_stmt *keys;
  int count = 0;
  const char *path = in_folder("kernels.db");
  OWN(wlmi_kernel_cache, cache, wlmi_kernel_cache_open(path, WLMI_KERNEL_CACHE_BYTES, &cache));
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, "SELECT key FROM kernel", -1, &keys, NULL), SQLITE_OK);
  char key[64][64];
  while (count < 64 && sqlite3_step(keys) == SQLITE_ROW)
    snprintf(key[count++], sizeof *key, "%s", (const char *)sqlite3_column_text(keys, 0));
  sqlite3_finalize(keys);
  sqlite3_close(db);
  assert_true(count > 0);
  for (int i = 0; i < count; i++) {
    WLM_FREED void *whole = NULL;
    GET(size_t, size, wlmi_kernel_cache_get(cache, key[i], &whole, &size));
    assert_status(WLM_OK,
                  wlmi_kernel_cache_put(cache, key[i], by_half ? whole : other, by_half ? size / 2 : sizeof other));
  }
}

TEST(a_kernel_that_does_not_load_is_replaced) {
  char text[96];
  for (int by_half = 0; by_half < 2; by_half++) {
    const int64_t before = runs_after_a_plan(text);
    warnings = 0;
    spoil_cache(by_half);
    wlm_set_log(count_warnings, NULL, WLM_LOG_WARNING);
    assert_int_equal(runs_after_a_plan(text), before + 1);
    assert_int_equal(warnings, 1);
    assert_int_equal(runs_after_a_plan(text), before + 1); /* the cache has the new kernel */
    assert_int_equal(warnings, 1);
    wlm_set_log(NULL, NULL, WLM_LOG_ERROR);
  }
}

/* Writes a compiler that adds a line to each source, from a file that may change. */
static void write_adding_compiler(const char *name) {
  char text[1024], path[320];
  snprintf(path, sizeof path, "%s/%s", folder.path, name);
  snprintf(text, sizeof text,
           "#!/bin/sh\n[ \"$1\" = --version ] || echo run >>'%s'\nexec cc -include '%s/added.h' \"$@\" -O0\n", compiled,
           folder.path);
  write_whole(path, text, strlen(text));
  assert_int_equal(chmod(path, 0700), 0);
  use_compiler(name);
}

static void add_line(const char *line) {
  const char *path = in_folder("added.h");
  write_whole(path, line, strlen(line));
}

/* The first process ends when it loads the kernel. The next one compiles it again. */
TEST(a_kernel_that_ends_a_process_is_not_cached) {
  char text[96];
  int result;
  write_adding_compiler("cc-adding");
  add_line("int raise(int); __attribute__((constructor)) static void end(void) { raise(9); }\n");
  const int64_t before = count_runs();
  const pid_t child = fork();
  if (!child) {
    runs_after_a_plan(text);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFSIGNALED(result));
  add_line("\n");
  assert_int_equal(runs_after_a_plan(text), before + 2);
}

/* ---- how many stay loaded ------------------------------------------------------------------------------------ */

enum { MOST = 4, OTHERS = 9 };

static int count_descriptors(void) {
  DIR *open = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(open)) count++;
  closedir(open);
  return count;
}

/* A problem whose result is k. */
static wlm_problem times(int k, char activation[16]) {
  snprintf(activation, 16, "x*%d", k);
  return (wlm_problem)PROBLEM(.n = 1, .epilogue.activation = activation);
}

static void multiply(wlm_context *context, int k) {
  char activation[16];
  const wlm_csr csr = smallest_matrix();
  const wlm_problem problem = times(k, activation);
  float b = 1, c = 0;
  wlm_execute_args args = EXECUTE_ARGS(.b = &b, .c = &c);
  assert_status(WLM_OK, wlm_spmm(context, &csr, &problem, &args));
  assert_true(c == (float)k);
}

static wlm_plan *plan_of(wlm_context *context, const wlm_matrix *matrix, int k) {
  char activation[16];
  const wlm_problem problem = times(k, activation);
  GET(wlm_plan *, plan, wlm_plan_create(context, matrix, &problem, &plan));
  return plan;
}

static void execute(const wlm_plan *plan, int k) {
  static _Alignas(256) char workspace[1024];
  float b = 1, c = 0;
  wlm_execute_args args = EXECUTE_ARGS(.b = &b, .c = &c, .workspace = workspace, .workspace_size = sizeof workspace);
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  assert_true(c == (float)k);
}

static wlm_context *open_small(void) {
  wlm_context *context = open_context();
  assert_true(context->device->info.most_loaded > 100);
  context->device->info.most_loaded = MOST;
  return context;
}

/* Kernel 1 is used all the time, so that it is never compiled again; there is no cache. */
TEST(kernels_that_are_not_used_are_unloaded) {
  OWNED(wlm_context) *context = open_small();
  wlmi_kernel_cache_close(context->cache);
  context->cache = NULL;
  const int64_t before = count_runs();
  const int descriptors = count_descriptors();
  for (int k = 2; k < 2 + OTHERS; k++) {
    multiply(context, 1);
    multiply(context, k);
    assert_in_range(context->loaded, 1, MOST);
  }
  assert_int_equal(count_runs() - before, 1 + OTHERS);
  multiply(context, 2); /* it was unloaded */
  assert_int_equal(count_runs() - before, 2 + OTHERS);
  assert_int_equal(count_descriptors(), descriptors);
}

/* More than MOST; when they are gone, the next kernel that is loaded unloads theirs. */
TEST(kernels_of_plans_stay) {
  enum { PLANS = MOST + 2 };
  const wlm_csr csr = smallest_matrix();
  OWNED(wlm_context) *context = open_small();
  wlm_plan *plans[PLANS];
  OWN(wlm_matrix, matrix, wlm_matrix_create(context, &csr, NULL, &matrix));
  for (int i = 0; i < PLANS; i++) plans[i] = plan_of(context, matrix, 1 + i);
  for (int i = 0; i < PLANS; i++) execute(plans[i], 1 + i);
  assert_int_equal(context->loaded, PLANS);
  for (int i = 1; i < PLANS; i++) wlm_plan_destroy(plans[i]);
  for (int i = 0; i < MOST; i++) multiply(context, 1 + PLANS + i);
  assert_in_range(context->loaded, 2, MOST);
  execute(plans[0], 1);
  multiply(context, 2);
  wlm_plan_destroy(plans[0]);
}

/* A compiler whose answer is lost, here because it deletes the file to which it goes, is one of an unknown version. */
TEST(a_compiler_without_an_answer) {
  static const char script[] = "#!/bin/sh\n[ \"$1\" != --version ] || rm -f \"$(readlink /proc/$$/fd/1)\"\n";
  const char *path = in_folder("cc-silent");
  write_whole(path, script, sizeof script - 1);
  assert_int_equal(chmod(path, 0700), 0);
  use_compiler("cc-silent");
  wlm_context_options options = BARE_OPTIONS(.device = "host");
  OWN(wlm_context, context, wlm_context_create(&options, &context));
  unsetenv("WARPLOOM_CC");
}

GROUP(home_begin, folder_end)
