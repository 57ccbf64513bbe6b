/* The order in which candidates are measured (select/forecast.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "select/forecast.h"

enum { COUNT = 40 };

static int place_of(const int64_t order[COUNT], int64_t candidate) {
  for (int k = 0; k < COUNT; k++)
    if (order[k] == candidate) return k;
  fail_msg("candidate %d is missing", (int)candidate);
  return -1;
}

static void the_likely_best_come_first(void **state) {
  (void)state;
  wlmi_expectation expected[COUNT] = {{0}};
  int64_t order[COUNT];
  expected[31].present = 1;
  expected[17] = (wlmi_expectation){.rule = 1, .seconds = 9};
  for (int i = 0; i < 10; i++) expected[i].seconds = i % 2 ? 1 + i : 100 - i; /* fastest first: 1 3 5 7 9 8 6 4 2 0 */
  wlmi_candidate_order(expected, COUNT, 1, order);
  assert_int_equal(order[0], 31);
  assert_int_equal(order[1], 17);
  static const int64_t predicted[] = {1, 3, 5, 7, 9, 8, 6, 4, 2, 0};
  assert_memory_equal(order + 2, predicted, sizeof predicted);
  for (int i = 0; i < COUNT; i++) assert_in_range(place_of(order, i), 0, COUNT - 1);
}

/* A candidate that is both the present choice and the rules' is measured once. */
static void the_rule_may_be_the_choice(void **state) {
  (void)state;
  wlmi_expectation expected[COUNT] = {{0}};
  int64_t order[COUNT];
  expected[5] = (wlmi_expectation){.present = 1, .rule = 1};
  wlmi_candidate_order(expected, COUNT, 3, order);
  assert_int_equal(order[0], 5);
  wlmi_candidate_order(expected, 0, 3, order); /* an empty list is valid */
}

static void the_rest_is_shuffled_by_the_seed(void **state) {
  (void)state;
  const wlmi_expectation expected[COUNT] = {{0}};
  int64_t first[COUNT], again[COUNT], other[COUNT];
  wlmi_candidate_order(expected, COUNT, 1, first);
  wlmi_candidate_order(expected, COUNT, 1, again);
  wlmi_candidate_order(expected, COUNT, 2, other);
  assert_memory_equal(first, again, sizeof first);
  assert_memory_not_equal(first, other, sizeof first);
  for (int i = 0; i < COUNT; i++) place_of(other, i);
}

/* Candidates slower than 2 e^0.2 = 2.44 times the best of their kind are doubtful. Unprepared candidates are
 * compared with unprepared ones only. */
static void slow_candidates_are_doubtful(void **state) {
  (void)state;
  const wlmi_doubt doubt = {.plain = 10, .best = 2, .spread = 0.1};
  wlmi_expectation expected[COUNT] = {{0}};
  int64_t order[COUNT];
  expected[0] = (wlmi_expectation){.seconds = 24};
  expected[1] = (wlmi_expectation){.seconds = 25};
  expected[2] = (wlmi_expectation){.seconds = 90};
  expected[3] = (wlmi_expectation){.seconds = 4.8, .prepares = 1};
  expected[4] = (wlmi_expectation){.seconds = 5, .prepares = 1};
  expected[5] = (wlmi_expectation){.seconds = 999, .present = 1};
  expected[6] = (wlmi_expectation){.seconds = 999, .rule = 1};
  assert_int_equal(wlmi_candidates_doubt(expected, COUNT, &doubt, COUNT), 3);
  for (int i = 0; i < COUNT; i++) assert_int_equal(expected[i].doubtful, i == 1 || i == 2 || i == 4);
  wlmi_candidate_order(expected, COUNT, 1, order);
  static const int64_t first[] = {5, 6, 3, 0}, last[] = {4, 1, 2};
  assert_memory_equal(order, first, sizeof first);
  assert_memory_equal(order + COUNT - 3, last, sizeof last);
}

/* A model that is too certain must not exclude too many candidates. */
static void the_number_of_doubtful_candidates_is_limited(void **state) {
  (void)state;
  const wlmi_doubt doubt = {.plain = 1, .best = 1, .spread = 0.1};
  wlmi_expectation expected[COUNT] = {{0}};
  for (int i = 0; i < COUNT; i++) expected[i].seconds = 100 + i;
  assert_int_equal(wlmi_candidates_doubt(expected, COUNT, &doubt, COUNT / 2), COUNT / 2);
  for (int i = 0; i < COUNT; i++) assert_int_equal(expected[i].doubtful, i >= COUNT / 2);
  assert_int_equal(wlmi_candidates_doubt(expected, COUNT, &doubt, 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_likely_best_come_first),
      cmocka_unit_test(the_rule_may_be_the_choice),
      cmocka_unit_test(slow_candidates_are_doubtful),
      cmocka_unit_test(the_number_of_doubtful_candidates_is_limited),
      cmocka_unit_test(the_rest_is_shuffled_by_the_seed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
