/* A fresh install: what commands show before anything was tuned, and files that they do not create. */
#include <unistd.h>

#include "support/command.h"
#include "support/test.h"

TEST(the_shipped_database_is_shown) {
  command c, same;
  c = RUN(0, "db", "list", "--json");
  assert_contains(c.out, "share/warploom/system.db");
  assert_true(json_number_at(c.out, "$.measurements") > 1000);
  same = RUN(0, "db", "list", "--json", "--system");
  assert_string_equal(c.out, same.out);
  c = RUN(0, "export", "--system", "-o", "-");
  assert_true(count_lines(c.out, "\"variant\"") > 1000);
  /* export without --system never exports the shipped measurements */
  c = RUN(1, "export", "-o", "-");
  assert_contains(c.err, "no such file; tune first, or export the shipped database with --system");
  c = RUN(2, "db", "list", "--system", "--db", "x.db");
  assert_contains(c.err, "--system and --db name two databases");
}

/* As soon as the user has tuned something, the commands show the user's database. */
TEST(the_users_database_is_shown_first) {
  RUN(0, "tune", "uniform:rows=30,d=2", "-n", "8", "--device", "host");
  command c = RUN(0, "db", "list", "--json");
  assert_contains(c.out, "tuned.db");
  assert_true(json_number_at(c.out, "$.measurements") < 1000);
}

TEST(no_home_folder_is_created) {
  const char *home = in_folder("nobody");
  setenv("HOME", home, 1);
  unsetenv("XDG_DATA_HOME");
  unsetenv("XDG_CACHE_HOME");
  RUN(0, "run", "uniform:rows=30,d=2", "-n", "8", "--device", "host", "--check");
  RUN(0, "db", "list");
  command c = RUN(2, "tune", "uniform:rows=30,d=2", "-n", "8", "--device", "host");
  assert_contains(c.err, "HOME is");
  assert_int_equal(access(home, F_OK), -1);
}

GROUP(home_begin, folder_end)
