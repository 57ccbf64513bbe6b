/* The kernel cache on the host device: a compiled kernel is reused until the compiler's file changes. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "db/kernel_cache.h"
#include "runtime/context.h"
#include "support/command.h"

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

/* Creates a plan in a new context with the same kernel cache; returns how often the compiler has run so far. */
static int64_t runs_after_a_plan(char text[96]) {
  static const int32_t rowptr[] = {0, 1}, colind[] = {0};
  static const float values[] = {1};
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_csr csr = WLM_CSR_INIT;
  wlm_context *context;
  wlm_matrix *matrix;
  wlm_plan *plan;
  char cache[320];
  snprintf(cache, sizeof cache, "%s/kernels.db", folder.path);
  options.device = "host";
  options.database = options.system_database = "";
  options.kernel_cache = cache;
  problem.n = 4;
  csr.rows = csr.cols = csr.nnz = 1;
  csr.rowptr = rowptr;
  csr.colind = colind;
  csr.values = values;
  assert_status(WLM_OK, wlm_context_create(&options, &context));
  assert_status(WLM_OK, wlm_matrix_create(context, &csr, NULL, &matrix));
  assert_status(WLM_OK, wlm_plan_create(context, matrix, &problem, &plan));
  snprintf(text, 96, "%s", wlmi_context_device(context)->info.compiler);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context);
  char *log = text_of(compiled);
  const int64_t runs = count_lines(log, "run");
  free(log);
  return runs;
}

static void another_compiler_compiles_again(void **state) {
  (void)state;
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

/* A compiler whose answer is lost, here because it deletes the file to which it goes, is one of an unknown version. */
static void a_compiler_without_an_answer(void **state) {
  (void)state;
  static const char script[] = "#!/bin/sh\n[ \"$1\" != --version ] || rm -f \"$(readlink /proc/$$/fd/1)\"\n";
  char path[320];
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlm_context *context;
  snprintf(path, sizeof path, "%s/cc-silent", folder.path);
  write_whole(path, script, sizeof script - 1);
  assert_int_equal(chmod(path, 0700), 0);
  use_compiler("cc-silent");
  options.device = "host";
  options.database = options.system_database = options.kernel_cache = "";
  assert_status(WLM_OK, wlm_context_create(&options, &context));
  wlm_context_destroy(context);
  unsetenv("WARPLOOM_CC");
}

/* ---- a kernel that does not load ------------------------------------------------------------------------- */

static int64_t warnings;

static void count_warnings(void *user, wlm_log_level level, const char *message) {
  (void)user;
  (void)level;
  if (strstr(message, "is compiled again")) warnings++;
}

/* Replaces every kernel of the cache by bytes with a correct hash that do not load, like a kernel of another machine.
 */
static void spoil_cache(void) {
  static const char data[] = "no shared object";
  wlmi_kernel_cache *cache;
  sqlite3 *db;
  sqlite3_stmt *keys;
  char path[320];
  int count = 0;
  snprintf(path, sizeof path, "%s/kernels.db", folder.path);
  assert_status(WLM_OK, wlmi_kernel_cache_open(path, WLM_KERNEL_CACHE_BYTES, &cache));
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, "SELECT key FROM kernel", -1, &keys, NULL), SQLITE_OK);
  char key[64][64];
  while (count < 64 && sqlite3_step(keys) == SQLITE_ROW)
    snprintf(key[count++], sizeof *key, "%s", (const char *)sqlite3_column_text(keys, 0));
  sqlite3_finalize(keys);
  sqlite3_close(db);
  assert_true(count > 0);
  for (int i = 0; i < count; i++) assert_status(WLM_OK, wlmi_kernel_cache_put(cache, key[i], data, sizeof data));
  wlmi_kernel_cache_close(cache);
}

static void a_kernel_that_does_not_load_is_replaced(void **state) {
  (void)state;
  char text[96];
  const int64_t before = runs_after_a_plan(text);
  spoil_cache();
  wlm_set_log(count_warnings, NULL, WLM_LOG_WARNING);
  assert_int_equal(runs_after_a_plan(text), before + 1);
  assert_int_equal(warnings, 1);
  assert_int_equal(runs_after_a_plan(text), before + 1); /* the cache has the new kernel */
  assert_int_equal(warnings, 1);
  wlm_set_log(NULL, NULL, WLM_LOG_ERROR);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(another_compiler_compiles_again),
                                     cmocka_unit_test(a_kernel_that_does_not_load_is_replaced),
                                     cmocka_unit_test(a_compiler_without_an_answer)};
  return cmocka_run_group_tests(tests, home_begin, folder_end);
}
