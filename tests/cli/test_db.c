/* warploom db through the real binary: explain shows pins; stores are merged, compared, pruned and repaired. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/test.h"

#define MATRIX "uniform:rows=300,d=4"

/* The value of a bucket in the output of `stats`. */
static char *stats_value(const char *path) {
  command c = RUN(0, "stats", MATRIX, "--json");
  char *value = json_at(c.out, path);
  assert_non_null(value);
  return value;
}

static void assert_step(const char *width, const char *step, const char *variant) {
  command c = RUN(0, "explain", MATRIX, "-n", width, "--json");
  assert_json(c.out, {"$[0].step", step}, {"$[0].variant", variant});
}

#define PINNED "host_row/rows=16,tile=16"
#define OTHER  "host_nnz/nonzeros=8192,tile=16"

/* The rules must choose another kernel, otherwise the tests below would show nothing. */
static void assert_not_chosen_by_itself(void) {
  command c = RUN(0, "explain", MATRIX, "-n", "8", "--json");
  assert_json_at(c.out, "$[0].step", "rule");
  FREED char *variant = json_at(c.out, "$[0].variant");
  assert_string_not_equal(variant, PINNED);
  assert_string_not_equal(variant, OTHER);
}

TEST(explain_shows_pins) {
  FREED char *bucket = stats_value("$.bucket"), *fingerprint = stats_value("$.fingerprint");
  assert_not_chosen_by_itself();
  command c = RUN(0, "db", "pin", bucket, PINNED, "-n", "8,16");
  assert_contains(c.out, PINNED);
  assert_step("8", "pin", PINNED);
  assert_step("16", "pin", PINNED);
  /* the pin of a matrix overrides that of its bucket */
  RUN(0, "db", "pin", MATRIX, OTHER, "-n", "8");
  assert_step("8", "pin", OTHER);
  assert_step("16", "pin", PINNED);

  c = RUN(0, "explain", MATRIX, "-n", "8");
  assert_contains(c.out, "pinned by hand for this very matrix", "unpinned it would be host_row/");
  c = RUN(0, "run", MATRIX, "-n", "8", "--check");
  assert_contains(c.out, OTHER);
  c = RUN(0, "db", "list");
  assert_contains(c.out, "pinned for", bucket, fingerprint);
  c = RUN(0, "db", "list", "--json");
  assert_true(json_is_valid(c.out));
  assert_json_at(c.out, "$.pins[0].variant", OTHER); /* a fingerprint sorts before "v1 ..." */

  RUN(0, "db", "unpin", fingerprint, "-n", "8");
  assert_step("8", "pin", PINNED);
  c = RUN(1, "db", "unpin", bucket, "-n", "8,32"); /* all or nothing */
  assert_contains(c.err, "nothing is pinned", "n = 32");
  assert_step("8", "pin", PINNED);
  RUN(0, "db", "unpin", bucket, "-n", "8,16,8");
  c = RUN(1, "db", "unpin", bucket, "-n", "8");
  assert_contains(c.err, "nothing is pinned");
  assert_not_chosen_by_itself();
}

TEST(invalid_variants_are_not_pinned) {
  command c = RUN(2, "db", "pin", MATRIX, "host_row/rows=16,tile=9", "-n", "8");
  assert_contains(c.err, "tile");
  c = RUN(1, "db", "pin", "no-such.mtx", PINNED, "-n", "8");
  assert_contains(c.err, "no-such.mtx");
  static const char *const impossible[][2] = {{"v2 rows=8 mean=4 cv=0", "version"},
                                              {"v1 rows=8 mean=4 cv=9", "cv must"}};
  for (int i = 0; i < 2; i++) {
    const char *untouched = in_folder("untouched.db");
    c = RUN(2, "db", "pin", impossible[i][0], PINNED, "-n", "8", "--db", untouched);
    assert_contains(c.err, impossible[i][1]);
    assert_int_not_equal(access(untouched, F_OK), 0);
  }
  c = RUN(2, "db", "pin", MATRIX);
  assert_contains(c.err, "usage: warploom db pin");
  c = RUN(2, "db", "pinn");
  assert_contains(c.err, "unknown action 'pinn'");
}

TEST(stores_are_merged_and_compared) {
  const char *a = in_folder("a.db"), *b = in_folder("b.db"), *both = in_folder("both.db");
  const char *lines = in_folder("both.jsonl"), *back = in_folder("back.db");
  RUN(0, "db", "pin", MATRIX, PINNED, "-n", "8,16", "--db", a);
  RUN(0, "db", "pin", MATRIX, OTHER, "-n", "8,12", "--db", b);
  command c = RUN(0, "db", "diff", a, b, "--json");
  assert_true(json_is_valid(c.out));
  assert_json(c.out, {"$.same", "0"}, {"$.pins[1].b", OTHER});
  c = RUN(0, "db", "diff", a, a, "--json");
  assert_json_at(c.out, "$.same", "1");
  c = RUN(2, "db", "merge", a, b);
  assert_contains(c.err, "-o FILE");
  c = RUN(0, "db", "merge", a, b, "-o", both);
  assert_contains(c.out, PINNED " is kept, " OTHER " is not");
  assert_int_equal(count_lines(c.out, " is kept, "), 1);
  c = RUN(2, "db", "merge", a, b, "-o", both);
  assert_contains(c.err, "exists already");
  c = RUN(0, "db", "list", "--db", both);
  assert_int_equal(count_lines(c.out, "tile=16"), 3);

  RUN(0, "export", "-o", lines, "--db", both);
  c = RUN(1, "db", "merge", a, lines, "-o", back);
  assert_contains(c.err, "both.jsonl: is a file of warploom export and no database; add it to one by warploom import");
  c = RUN(1, "import", both, "--db", back);
  assert_contains(c.err, "both.db:1: this is a database and no file of warploom export; join databases by warploom db");
  RUN(0, "import", lines, "--db", back);
  c = RUN(0, "db", "diff", both, back, "--json");
  assert_json_at(c.out, "$.same", "1");
  c = RUN(0, "import", lines, "--db", b); /* b has another pin */
  assert_contains(c.err, OTHER " is kept, " PINNED " is not");
}

TEST(undamaged_stores_are_not_changed) {
  const char *a = in_folder("a.db");
  RUN(0, "db", "pin", MATRIX, PINNED, "-n", "8", "--db", a);
  command c = RUN(0, "db", "check", "--repair", "--db", a);
  assert_contains(c.out, "ok");
  assert_int_not_equal(access(in_folder("a.db.damaged"), F_OK), 0);
  c = RUN(0, "db", "prune", "--db", a, "--json");
  assert_json_at(c.out, "$.removed", "0");
  c = RUN(0, "db", "list", "--db", a);
  assert_contains(c.out, PINNED);
}

/* `db check` names --repair, the repair reports what it kept, and a second check finds no damage. */
TEST(truncated_stores_are_repaired) {
  size_t size;
  const char *a = in_folder("a.db");
  RUN(0, "db", "pin", MATRIX, PINNED, "-n", "8", "--db", a);
  FREED unsigned char *bytes = read_whole(a, &size);
  write_whole(a, bytes, size - 4096);
  command c = RUN(1, "db", "check", "--db", a);
  assert_contains(c.err, "run 'warploom db check --repair' on it");
  c = RUN(0, "db", "check", "--repair", "--db", a, "--json");
  assert_true(json_is_valid(c.out));
  assert_json(c.out, {"$.lost_at_least", "0"}, {"$.kept_models", "0"});
  RUN(0, "db", "check", "--db", a);

  write_whole(a, bytes, 1000);
  c = RUN(1, "db", "check", "--repair", "--db", a);
  assert_contains(c.err, "nothing of it can be read any more; move it away");
}

/* Eight processes tune a matrix each into one store, and three are killed. The store is undamaged, and tuning again
 * measures what the killed processes left. */
TEST(eight_tuners_share_a_store) {
  enum { TUNERS = 8, KILLED = 3 };
  command tuners[TUNERS], c;
  char input[TUNERS][64];
  const char *templates = in_folder("templates");
  assert_int_equal(mkdir(templates, 0700), 0);
  assert_int_equal(symlink(WLM_SOURCE_DIR "/templates/host_row", in_folder("templates/host_row")), 0);
  setenv("WARPLOOM_TEMPLATES", templates, 1); /* only one family, so there is little to compile */
  /* eight processes with many threads each would mostly wait for a core */
  setenv("OMP_NUM_THREADS", "1", 1);
  for (int i = 0; i < TUNERS; i++) {
    snprintf(input[i], sizeof input[i], "uniform:rows=%d,d=3", 100 + i);
    command_begin(&tuners[i], &folder, "tune", input[i], "-n", "8", "--device", "host");
  }
  for (int i = 0; i < KILLED; i++) {
    usleep(100000);
    kill(tuners[i].process, SIGKILL);
  }
  for (int i = 0; i < TUNERS; i++) {
    command_wait(&tuners[i]);
    if (i >= KILLED && tuners[i].code) fail_msg("tuner %d: %d, %s", i, tuners[i].code, tuners[i].err);
  }
  c = RUN(0, "db", "check");
  for (int i = 0; i < KILLED; i++) c = RUN(0, "tune", input[i], "-n", "8", "--device", "host");
  c = RUN(0, "db", "list", "--json");
  FREED char *candidates = json_at(c.out, "$.choices[0].candidates");
  assert_non_null(candidates);
  for (int i = 0; i < TUNERS; i++) { /* every matrix has all candidates */
    char path[64];
    snprintf(path, sizeof path, "$.choices[%d].candidates", i);
    assert_json_at(c.out, path, candidates);
  }
  assert_null(json_at(c.out, "$.choices[8]"));
  unsetenv("OMP_NUM_THREADS");
  unsetenv("WARPLOOM_TEMPLATES");
}

EACH(home_begin, folder_end)
