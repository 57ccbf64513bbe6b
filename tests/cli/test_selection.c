/* warploom bench selection: four lines per case, timed together, from a database that was tuned before. */
#include "support/command.h"
#include "support/test.h"

static const char input[] = "uniform:rows=400,d=5";

TEST(four_ways_of_choosing_a_case) {
  static const char *const modes[] = {"tuned", "loo", "estimated", "rule"}, *const sources[] = {"fingerprint", "rule",
                                                                                                "rule", "rule"};
  size_t size;
  const char *database = in_folder("tuned.db"), *results = in_folder("selection.jsonl");
  RUN(0, "tune", "--device", "host", "--db", database, "-n", "16", input);
  RUN(0, "bench", "selection", "--device", "host", "--samples", "3", "--db", database, "-n", "16", "--out", results,
      input);
  FREED char *text = (char *)read_whole(results, &size);
  char *rest = text;
  for (int mode = 0; mode < 4; mode++) {
    char *line = strtok_r(rest, "\n", &rest);
    assert_non_null(line);
    assert_json(line, {"$.matrix", input}, {"$.mode", modes[mode]}, {"$.source", sources[mode]});
    assert_true(json_number_at(line, "$.n") == 16);
    assert_true(json_number_at(line, "$.best_us") > 0);
    assert_true(json_number_at(line, "$.us") >= json_number_at(line, "$.best_us"));
    assert_null(json_at(line, "$.best_fixed_us")); /* only matrices of the suite have one */
    if (mode)
      assert_null(json_at(line, "$.distance")); /* a decision by a rule has no distance */
    else
      assert_true(json_number_at(line, "$.distance") == 0);
  }
  assert_null(strtok_r(rest, "\n", &rest));
}

TEST(needs_a_database) {
  command c = RUN(2, "bench", "selection", "--device", "host", "-n", "16", input);
  assert_contains(c.err, "--db");
}

GROUP(folder_begin, folder_end)
