/* The table of `tune`: winners first, and which times came from screening. */
#include "cli/tune_outcomes.h"
#include "support/test.h"

static wlm_candidate_result result_of(const char *variant, double us, int samples) {
  return (wlm_candidate_result){
      .variant = variant, .seconds = us * 1e-6, .spread = 0.03, .samples = samples, .max_rel_err = 1e-7};
}

static void report(const wlm_candidate_result *results, int count, wlmi_report *out) {
  HELD(wlmi_tune_outcomes) outcomes = {0};
  for (int i = 0; i < count; i++) wlmi_tune_outcomes_keep(&outcomes, &results[i]);
  assert_false(outcomes.failed);
  char starred[WLMI_VARIANT_NAME];
  wlmi_tune_outcomes_report(&outcomes, out, starred);
  assert_true(!*starred || strstr(out->text.data, starred));
}

static const char explanation[] = "\nscreened: timed once";

/* A screening time below the winner's is marked and explained. */
TEST(screened_times_are_marked) {
  wlm_candidate_result broken = result_of("broken", 0, 0);
  broken.failed = 1, broken.reason = "does not compile";
  const wlm_candidate_result results[] = {broken, result_of("glanced", 607, 1), result_of("precise", 700, 1),
                                          result_of("precise", 754, 9)};
  HELD(wlmi_report) text = {0};
  report(results, 4, &text);
  assert_contains(text.text.data, "*  precise  754.00  3.0%            9", "   glanced  607.00  screened        1",
                  explanation);
  assert_true(strstr(text.text.data, "precise") < strstr(text.text.data, "glanced"));
  assert_true(strstr(text.text.data, "glanced") < strstr(text.text.data, "broken"));
}

TEST(nothing_is_explained_where_all_were_timed_again) {
  const wlm_candidate_result result = result_of("precise", 754, 9);
  HELD(wlmi_report) text = {0};
  report(&result, 1, &text);
  assert_null(strstr(text.text.data, "screened"));
}

/* The star follows the rules of the choice: among times that differ by noise alone the first name wins. */
TEST(the_star_is_the_choice) {
  wlm_candidate_result results[] = {result_of("b", 100, 9), result_of("a", 101, 9), result_of("c", 120, 9)};
  HELD(wlmi_report) text = {0};
  report(results, 3, &text);
  assert_contains(text.text.data, "*  a        101.00", "   b        100.00",
                  "\n*: among times that differ by less than their spread and 2 %");
  wlmi_report_release(&text);
  results[1].seconds = 103e-6; /* no tie */
  report(results, 3, &text);
  assert_contains(text.text.data, "*  b        100.00");
  assert_null(strstr(text.text.data, "among times"));
  wlmi_report_release(&text);
  results[0].prepare_seconds = 1e-3;
  report(results, 3, &text);
  assert_contains(text.text.data, "*  a        103.00");
  assert_null(strstr(text.text.data, "among times"));
}
