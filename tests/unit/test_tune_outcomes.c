/* The table of `tune`: winners first, and which times came from screening. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/**/
#include <cmocka.h>

#include "cli/tune_outcomes.h"
#include "support/asserts.h"

static wlm_candidate_result result_of(const char *variant, double us, int samples) {
  return (wlm_candidate_result){
      .variant = variant, .seconds = us * 1e-6, .spread = 0.03, .samples = samples, .max_rel_err = 1e-7};
}

static void report(const wlm_candidate_result *results, int count, wlmi_report *out) {
  wlmi_tune_outcomes outcomes = {0};
  for (int i = 0; i < count; i++) wlmi_tune_outcomes_keep(&outcomes, &results[i]);
  assert_false(outcomes.failed);
  wlmi_tune_outcomes_report(&outcomes, out);
  wlmi_tune_outcomes_release(&outcomes);
}

static const char explanation[] = "\nscreened: timed once";

/* A screening time below the winner's is marked and explained. */
static void screened_times_are_marked(void **state) {
  (void)state;
  wlm_candidate_result broken = result_of("broken", 0, 0);
  broken.failed = 1, broken.reason = "does not compile";
  const wlm_candidate_result results[] = {broken, result_of("glanced", 607, 1), result_of("precise", 700, 1),
                                          result_of("precise", 754, 9)};
  wlmi_report text = {0};
  report(results, 4, &text);
  assert_contains(text.text.data, "*  precise  754.00  3.0%            9");
  assert_contains(text.text.data, "   glanced  607.00  screened        1");
  assert_contains(text.text.data, explanation);
  assert_true(strstr(text.text.data, "precise") < strstr(text.text.data, "glanced"));
  assert_true(strstr(text.text.data, "glanced") < strstr(text.text.data, "broken"));
  wlmi_report_release(&text);
}

static void nothing_is_explained_where_all_were_timed_again(void **state) {
  (void)state;
  const wlm_candidate_result result = result_of("precise", 754, 9);
  wlmi_report text = {0};
  report(&result, 1, &text);
  assert_null(strstr(text.text.data, "screened"));
  wlmi_report_release(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(screened_times_are_marked),
      cmocka_unit_test(nothing_is_explained_where_all_were_timed_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
