/* warploom tune with a budget that is too short: its messages, and that the same command continues. */
#include <sys/inotify.h>
#include <unistd.h>

#include "support/command.h"
#include "support/test.h"

#define INPUT "uniform:rows=500,d=6"

static int64_t integer_at(const char *json, const char *path) {
  FREED char *text = json_at(json, path);
  if (!text) fail_msg("no %s in %s", path, json);
  const int64_t value = strtoll(text, NULL, 10);
  return value;
}

/* A budget of 1 ms measures one candidate of each width per run. */
TEST(a_budget_is_reported_and_the_same_command_resumes) {
  enum { RUNS = 40 };
  command c;
  int64_t candidates = 0, left = 1;
  const char *database = in_folder("budget.db");
  for (int run = 0; run < RUNS && left; run++) {
    c = RUN(0, "tune", INPUT, "-n", "16", "--device", "host", "--db", database, "--budget", "1ms", "--json");
    assert_true(json_is_valid(c.out));
    candidates = integer_at(c.out, "$.inputs[0].tuned[0].variants");
    const int64_t known = integer_at(c.out, "$.inputs[0].tuned[0].known");
    left = integer_at(c.out, "$.inputs[0].tuned[0].left");
    assert_int_equal(known, run);
    assert_int_equal(integer_at(c.out, "$.inputs[0].tuned[0].measured"), 1);
    assert_int_equal(left, candidates - known - 1);
    assert_int_equal(integer_at(c.out, "$.inputs[0].tuned[0].unlikely"), 0);
    forget_noise(database);
  }
  assert_int_equal(left, 0);
  c = RUN(0, "tune", INPUT, "-n", "16", "--device", "host", "--db", database, "--budget", "60s");
  assert_int_equal(count_lines(c.out, "goes on"), 0);
  c = RUN(0, "tune", INPUT, "-n", "16,24,32", "--device", "host", "--db", database, "--budget", "1ms");
  /* n = 16 is complete */
  assert_int_equal(count_lines(c.out, "candidates are left; the same command goes on"), 2);
}

/* Candidates that were only screened are listed below all finalists, so the choice is above them. */
TEST(the_choice_is_listed_above_screened_candidates) {
  command c = RUN(0, "tune", INPUT, "-n", "48", "--device", "host", "--json", "--again");
  int looks = 0, precise = 0;
  for (int i = 0;; i++) {
    char path[64];
    snprintf(path, sizeof path, "$.inputs[0].tuned[0].candidates[%d].samples", i);
    char *text = json_at(c.out, path);
    if (!text) break;
    const int samples = atoi(text);
    free(text);
    if (samples > 1) assert_int_equal(looks, 0);
    looks += samples == 1;
    precise += samples > 1;
  }
  assert_true(precise > 0);
}

/* How often a tune of these widths opens its database, which has one other width. */
static int openings(const char *widths) {
  char events[4096], database[320];
  int count = 0;
  snprintf(database, sizeof database, "%s/%s.db", folder.path, widths);
  RUN(0, "tune", INPUT, "-n", "16", "--device", "host", "--db", database, "--budget", "1ms");
  const int watch = inotify_init1(IN_NONBLOCK);
  assert_true(watch >= 0);
  assert_true(inotify_add_watch(watch, database, IN_OPEN | IN_CLOSE) >= 0); /* closing keeps openings apart */
  RUN(0, "tune", INPUT, "-n", widths, "--device", "host", "--db", database, "--budget", "1ms");
  for (ssize_t size; (size = read(watch, events, sizeof events)) > 0;)
    for (ssize_t at = 0; at < size; at += (ssize_t)sizeof(struct inotify_event)) /* events of a file have no name */
      count += (((const struct inotify_event *)(events + at))->mask & IN_OPEN) != 0;
  close(watch);
  return count;
}

/* Each width measures something, which is chosen from when the databases are read again at the end. */
TEST(databases_are_read_as_often_for_three_widths_as_for_one) {
  const int once = openings("24");
  assert_true(once > 0);
  assert_int_equal(openings("24,40,48"), once);
}

GROUP(home_begin, folder_end)
