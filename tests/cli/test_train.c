/* warploom train: reports the models that it trained, and problem classes with too few matrices. */
#include <unistd.h>

#include "support/command.h"
#include "support/test.h"

TEST(a_missing_database_is_an_error) {
  const char *database = folder_file(&folder, "none.db");
  command c = RUN(0, "train", "--device", "host", "--db", database);
  assert_contains(c.out, "nothing was measured");
  c = RUN(0, "train", "--device", "host", "--db", database, "--json");
  assert_true(json_is_valid(c.out));
  assert_json(c.out, {"$.models", "0"}, {"$.needed", "8"});
  assert_int_not_equal(access(database, F_OK), 0);
}

TEST(too_few_matrices_are_counted) {
  const char *database = folder_file(&folder, "taught.db");
  command c =
      RUN(0, "tune", "uniform:rows=60,d=3", "-n", "8,16", "--device", "host", "--db", database, "--budget", "1ms");
  c = RUN(0, "train", "--device", "host", "--db", database);
  assert_contains(c.out, "none: it takes 8 matrices");
  c = RUN(0, "train", "--device", "host", "--db", database, "--json");
  assert_json(c.out, {"$.models", "0"},
              {"$.classes[0].problems", "dense=f32,rowptr=i32,colind=i32,sample=none,narrow=1"}, /* n <= 8 */
              {"$.classes[1].problems", "dense=f32,rowptr=i32,colind=i32,sample=none"}, {"$.classes[1].matrices", "1"},
              {"$.classes[1].cases", "1"}, {"$.classes[1].trained", "0"});
}

TEST(enough_matrices_make_a_model) {
  const char *database = folder_file(&folder, "taught.db");
  RUN(0, "tune", "uniform:rows=61,d=3", "uniform:rows=62,d=3", "uniform:rows=63,d=3", "uniform:rows=64,d=3",
      "uniform:rows=65,d=3", "uniform:rows=66,d=3", "uniform:rows=67,d=3", "-n", "16", "--device", "host", "--db",
      database, "--budget", "1ms");
  command c = RUN(0, "train", "--device", "host", "--db", database, "--json");
  assert_json(c.out, {"$.models", "1"}, {"$.classes[1].matrices", "8"}, {"$.classes[1].cases", "8"},
              {"$.classes[1].trained", "1"});
  c = RUN(0, "train", "--device", "host", "--db", database);
  assert_contains(c.out, "trained, off by");
}

GROUP(home_begin, folder_end)
