/* The order in which candidates are measured (tuner/timed.h). */
#include "support/test.h"
#include "tuner/timed.h"

enum { COUNT = 40 };

/* `samples` has the number of a candidate. */
static void make(wlmi_timed list[COUNT]) {
  memset(list, 0, COUNT * sizeof *list);
  for (int i = 0; i < COUNT; i++) {
    list[i].rank = WLMI_RANK_UNKNOWN;
    list[i].samples = i;
  }
}

static void predict(wlmi_timed *candidate, double seconds) {
  candidate->expected = seconds;
  if (candidate->rank == WLMI_RANK_UNKNOWN) candidate->rank = WLMI_RANK_PREDICTED;
}

static void assert_order(const wlmi_timed *list, const int *expected, int count) {
  for (int i = 0; i < count; i++) assert_int_equal(list[i].samples, expected[i]);
}

static void assert_all_there(const wlmi_timed list[COUNT]) {
  int seen[COUNT] = {0};
  for (int i = 0; i < COUNT; i++) seen[list[i].samples]++;
  for (int i = 0; i < COUNT; i++) assert_int_equal(seen[i], 1);
}

TEST(the_likely_best_come_first) {
  static const int first[] = {31, 17, 1, 3, 5, 7, 9, 8, 6, 4, 2, 0};
  wlmi_timed list[COUNT];
  make(list);
  list[31].rank = WLMI_RANK_PRESENT;
  list[17].rank = WLMI_RANK_RULE;
  predict(&list[17], 9);
  for (int i = 0; i < 10; i++) predict(&list[i], i % 2 ? 1 + i : 100 - i);
  wlmi_timed_order(list, COUNT, 1);
  assert_order(list, first, sizeof first / sizeof *first);
  assert_all_there(list);
  wlmi_timed_order(list, 0, 3); /* an empty list is valid */
}

TEST(the_rest_is_shuffled_by_the_seed) {
  wlmi_timed first[COUNT], again[COUNT], other[COUNT];
  make(first), make(again), make(other);
  wlmi_timed_order(first, COUNT, 1);
  wlmi_timed_order(again, COUNT, 1);
  wlmi_timed_order(other, COUNT, 2);
  assert_memory_equal(first, again, sizeof first);
  assert_memory_not_equal(first, other, sizeof first);
  assert_all_there(other);
}

/* Candidates slower than 2 e^0.2 = 2.44 times the best of their kind are doubtful. Unprepared candidates are
 * compared with unprepared ones only. */
TEST(slow_candidates_are_doubtful) {
  const wlmi_doubt doubt = {.best = {10, 2}, .spread = 0.1};
  static const int first[] = {5, 6, 3, 0}, last[] = {4, 1, 2};
  wlmi_timed list[COUNT];
  make(list);
  list[3].kind = list[4].kind = WLMI_PREPARED;
  list[5].rank = WLMI_RANK_PRESENT;
  list[6].rank = WLMI_RANK_RULE;
  static const double seconds[] = {24, 25, 90, 4.8, 5, 999, 999};
  for (int i = 0; i < 7; i++) predict(&list[i], seconds[i]);
  assert_int_equal(wlmi_timed_doubt(list, COUNT, &doubt, COUNT), 3);
  for (int i = 0; i < COUNT; i++) assert_int_equal(list[i].rank == WLMI_RANK_DOUBTFUL, i == 1 || i == 2 || i == 4);
  wlmi_timed_order(list, COUNT, 1);
  assert_order(list, first, 4);
  assert_order(list + COUNT - 3, last, 3);
}

/* A model that is too certain must not exclude too many candidates. */
TEST(the_number_of_doubtful_candidates_is_limited) {
  const wlmi_doubt doubt = {.best = {1, 1}, .spread = 0.1};
  wlmi_timed list[COUNT];
  make(list);
  for (int i = 0; i < COUNT; i++) predict(&list[i], 100 + i);
  assert_int_equal(wlmi_timed_doubt(list, COUNT, &doubt, COUNT / 2), COUNT / 2);
  for (int i = 0; i < COUNT; i++) assert_int_equal(list[i].rank == WLMI_RANK_DOUBTFUL, i >= COUNT / 2);
  assert_int_equal(wlmi_timed_doubt(list, COUNT, &doubt, 0), 0);
}
