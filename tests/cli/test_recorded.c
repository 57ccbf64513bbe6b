/* Recorded problems: run --record records a problem for which nothing similar was tuned, db lists it, and tune
 * --recorded tunes and removes it. */
#include "support/command.h"
#include "support/test.h"

#define INPUT "synth:rows=400,d=5,cv=1.2"

static char database[320];

static void run_and_record(const char *widths, const char *op) {
  RUN(0, "run", INPUT, "-n", widths, "--op", op, "--device", "host", "--db", database, "--record");
}

TEST(tuning_removes_recorded_problems) {
  snprintf(database, sizeof database, "%s/recorded.db", folder.path);
  run_and_record("4,64", "sum");
  run_and_record("4", "copy_b.max");
  run_and_record("4,64", "sum"); /* a problem that is already recorded */
  command c = RUN(0, "db", "list", "--db", database, "--json");
  assert_true(json_is_valid(c.out));
  assert_json(c.out, {"$.measurements", "0"}, {"$.recorded[2].rows", "400"});
  char *fourth = json_at(c.out, "$.recorded[3]");
  assert_null(fourth);
  c = RUN(0, "db", "list", "--db", database);
  assert_contains(c.out, "recorded on", "op=copy_b.max");

  c = RUN(0, "tune", "--recorded", "--device", "host", "--db", database, "--json");
  assert_true(json_is_valid(c.out));
  assert_json(c.out, {"$.recorded", "3"}, {"$.tuned", "3"}, {"$.left", "0"});
  c = RUN(0, "tune", "--recorded", "--device", "host", "--db", database, "--json");
  assert_json(c.out, {"$.recorded", "0"}, {"$.measurements", "0"});

  /* The synthetic matrix that was tuned instead has nearly the same statistics. */
  c = RUN(0, "explain", INPUT, "-n", "64", "--device", "host", "--db", database, "--json");
  assert_json_at(c.out, "$[0].step", "similar");
  run_and_record("4,64", "sum");
  c = RUN(0, "db", "list", "--db", database, "--json");
  char *none = json_at(c.out, "$.recorded[0]");
  assert_null(none);
}

/* Even a budget of 1 ms measures one candidate. A problem stays recorded until all its candidates are measured. */
TEST(the_same_command_resumes_after_a_budget) {
  int left = 1;
  snprintf(database, sizeof database, "%s/budget.db", folder.path);
  run_and_record("4", "sum");
  for (int i = 0; i < 200 && left; i++) { /* fewer where several candidates are measured in 1 ms */
    command c = RUN(0, "tune", "--recorded", "--budget", "1ms", "--device", "host", "--db", database, "--json");
    FREED char *text = json_at(c.out, "$.left");
    left = atoi(text);
    if (!i) assert_int_equal(left, 1);
  }
  assert_int_equal(left, 0);
}

/* Export and import carry recorded problems. A problem that cannot be tuned is reported and stays recorded, and the
 * others are tuned. */
TEST(problems_that_cannot_be_tuned_stay_recorded) {
  char line[1024];
  snprintf(database, sizeof database, "%s/from.db", folder.path);
  const char *other = in_folder("to.db"), *lines = in_folder("lines.jsonl");
  run_and_record("4", "sum");
  RUN(0, "export", "--db", database, "-o", lines);
  char *text = text_of(lines), *problem = strstr(text, "\"problem\":\"op="), *begin = strstr(text, "{\"recorded\"");
  assert_true(begin && problem);
  FILE *file = fopen(lines, "a");
  snprintf(line, sizeof line, "%.*s\"problem\":\"op=of.another,version=9\",\"n\":4}\n", (int)(problem - begin), begin);
  fputs(line, file);
  fclose(file);
  free(text);
  RUN(0, "import", lines, "--db", other);
  command c = RUN(0, "db", "diff", database, other, "--json");
  assert_json(c.out, {"$.recorded_only_in_a", "0"}, {"$.recorded_only_in_b", "1"}, {"$.same", "0"});
  c = RUN(1, "tune", "--recorded", "--device", "host", "--db", other);
  assert_contains(c.err, "1 of 2 could not be tuned and stay recorded");
  assert_contains(c.out, "is of another version");
  c = RUN(0, "db", "list", "--db", other, "--json");
  assert_json_at(c.out, "$.recorded[0].problem", "op=of.another,version=9");
}

TEST(bad_command_lines) {
  command c = RUN(2, "tune", "--recorded", INPUT, "--device", "host");
  assert_contains(c.err, "tune --recorded: '" INPUT "' is one argument too many");
  RUN(2, "run", "--recorded", INPUT, "--device", "host");
  c = RUN(2, "tune", "--recorded", "--device", "host", "--db", "");
  assert_contains(c.err, "no user database");
}

GROUP(home_begin, folder_end)
