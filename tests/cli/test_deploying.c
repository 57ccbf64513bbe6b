/* docs/deploying.md between two homes: one tunes, exports and ships, the other one imports, merges and rolls back. */
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/test.h"

#define GRAPH  "synth:rows=300,d=6,cv=1"
#define OTHER  "synth:rows=200,d=20,cv=0"
#define ON_CPU "-n", "16", "--device", "host"

static char database[2][320]; /* of the homes a and b */

static int make_homes(void **state) {
  if (home_begin(state)) return 1;
  for (int i = 0; i < 2; i++) {
    char home[300];
    snprintf(home, sizeof home, "%s/%c", folder.path, 'a' + i);
    if (mkdir(home, 0700)) return 1;
    snprintf(database[i], sizeof database[i], "%s/tuned.db", home);
  }
  return 0;
}

static void tune(const char *input, const char *db) { RUN(0, "tune", input, ON_CPU, "--db", db); }

/* The step of the choice, and the kernel; free() both. */
static void explain(const char *input, const char *db, char **step, char **kernel) {
  command c = RUN(0, "explain", input, ON_CPU, "--db", db, "--json");
  *step = json_at(c.out, "$[0].step");
  *kernel = json_at(c.out, "$[0].variant");
  assert_non_null(*step);
  assert_non_null(*kernel);
}

static void assert_same_choice(const char *input, const char *one, const char *other) {
  char *steps[2], *kernels[2];
  explain(input, one, &steps[0], &kernels[0]);
  explain(input, other, &steps[1], &kernels[1]);
  assert_string_equal(steps[0], "fingerprint");
  assert_string_equal(steps[1], "fingerprint");
  assert_string_equal(kernels[0], kernels[1]);
  for (int i = 0; i < 2; i++) free(steps[i]), free(kernels[i]);
}

static void export_to(const char *lines, const char *db) { RUN(0, "export", "-o", lines, "--db", db); }

TEST(exported_lines_serve_another_home) {
  const char *lines = in_folder("a.jsonl"), *again = in_folder("b.jsonl");
  tune(GRAPH, database[0]);
  export_to(lines, database[0]);
  RUN(0, "import", lines, "--db", database[1]);
  assert_same_choice(GRAPH, database[0], database[1]);
  export_to(again, database[1]);
  char *first = text_of(lines), *second = text_of(again);
  assert_string_equal(first, second);
  free(first), free(second);
}

/* Commands that choose read an export, a database or a folder of both in place. */
TEST(layers_serve_another_home) {
  command c;
  const char *site = in_folder("site"), *lines = in_folder("site/a.jsonl");
  assert_int_equal(mkdir(site, 0700), 0);
  tune(GRAPH, database[0]);
  export_to(lines, database[0]);
  const char *const layers[] = {lines, database[0], site};
  char *step, *kernel;
  explain(GRAPH, database[0], &step, &kernel);
  for (int i = 0; i < 3; i++) {
    c = RUN(0, "explain", GRAPH, ON_CPU, "--use", layers[i], "--json");
    assert_json(c.out, {"$[0].step", "fingerprint"}, {"$[0].variant", kernel});
  }
  c = RUN(0, "run", GRAPH, ON_CPU, "--use", site, "--use", lines, "--json");
  assert_contains(c.out, kernel);
  c = RUN(1, "run", GRAPH, ON_CPU, "--use", lines, "--use", "nowhere");
  assert_contains(c.err, "nowhere: No such file or directory");
  c = RUN(2, "tune", GRAPH, ON_CPU, "--use", lines);
  assert_contains(c.err, "takes no option '--use'");
  free(step), free(kernel);
}

static void pin(const char *db, const char *variant) { RUN(0, "db", "pin", GRAPH, variant, ON_CPU, "--db", db); }

TEST(pins_that_disagree_are_reported) {
  char *step, *kernel;
  const char *merged = in_folder("site.db");
  tune(GRAPH, database[0]);
  tune(OTHER, database[1]);
  pin(database[0], "host_row/rows=16,tile=16");
  pin(database[1], "host_row/rows=128,tile=16");
  command c = RUN(0, "db", "merge", database[0], database[1], "-o", merged);
  assert_contains(c.out, "host_row/rows=16,tile=16 is kept, host_row/rows=128,tile=16 is not");
  explain(GRAPH, merged, &step, &kernel);
  assert_string_equal(step, "pin");
  assert_string_equal(kernel, "host_row/rows=16,tile=16");
  free(step), free(kernel);
  assert_same_choice(OTHER, database[1], merged);
  c = RUN(2, "db", "merge", database[0], database[1], "-o", merged);
  assert_contains(c.err, "exists already");
}

/* What an administrator puts in the place of a database, and takes back. */
TEST(rolling_back_brings_the_former_choice) {
  char *steps[3], *kernels[3];
  const char *merged = in_folder("site.db"), *before = in_folder("before.db");
  tune(OTHER, database[0]);
  tune(GRAPH, database[1]);
  explain(GRAPH, database[0], &steps[0], &kernels[0]);
  RUN(0, "db", "merge", database[0], database[1], "-o", merged);
  assert_int_equal(rename(database[0], before), 0);
  assert_int_equal(rename(merged, database[0]), 0);
  explain(GRAPH, database[0], &steps[1], &kernels[1]);
  assert_string_equal(steps[1], "fingerprint");
  assert_string_not_equal(steps[0], "fingerprint");
  command c = RUN(0, "db", "diff", before, database[0], "--json");
  assert_json_at(c.out, "$.only_in_a", "0");
  assert_int_equal(rename(before, database[0]), 0);
  explain(GRAPH, database[0], &steps[2], &kernels[2]);
  assert_string_equal(steps[2], steps[0]);
  assert_string_equal(kernels[2], kernels[0]);
  for (int i = 0; i < 3; i++) free(steps[i]), free(kernels[i]);
}

TEST(without_a_place_to_write) {
  setenv("XDG_DATA_HOME", "/proc/none", 1);
  setenv("XDG_CACHE_HOME", "/proc/none", 1);
  command c = RUN(0, "run", GRAPH, ON_CPU);
  assert_int_equal(count_lines(c.err, "warning: continuing without a kernel cache: /proc/none"), 1);
  c = RUN(1, "tune", GRAPH, ON_CPU);
  assert_contains(c.err, "/proc/none/warploom/tuned.db: cannot make the folder");
}

/* Also where no system.db is. */
TEST(an_archive_is_found_beside_the_library) {
  command c;
  char path[400];
  static const char *const folders[] = {"bin", "share", "share/warploom"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    snprintf(path, sizeof path, "%s/%s", folder.path, folders[i]);
    assert_int_equal(mkdir(path, 0700), 0);
  }
  const char *program = in_folder("bin/warploom");
  assert_int_equal(symlink(WLM_COMMAND, program), 0);
  snprintf(path, sizeof path, "%s/share/warploom/kernels.archive", folder.path);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fclose(file);
  command_start(&c, &folder, (const char *const[]){program, "info", "--json", NULL});
  command_wait(&c);
  assert_int_equal(c.code, 0);
  snprintf(path, sizeof path, "%s/bin/../share/warploom/kernels.archive", folder.path);
  assert_json_at(c.out, "$.kernel_archive", path);
  setenv("WARPLOOM_KERNELS", "/my/own.archive", 1);
  c = RUN(0, "info", "--json");
  assert_json_at(c.out, "$.kernel_archive", "/my/own.archive");
  unsetenv("WARPLOOM_KERNELS");
}

EACH(make_homes, folder_end)
