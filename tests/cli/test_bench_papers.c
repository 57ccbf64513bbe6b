/* The suites of the two papers on the host device, and the summaries of their results. */
#include "support/command.h"
#include "support/test.h"

/* Every row has 40 edges, so S = 16 and 32 keep some of them and larger S keep all. */
TEST(samples_by_both_strategies) {
  static const char *const strategies[] = {"bucket", "fastrand"};
  static const char *const widths[] = {"16", "32", "64", "128", "256", "512"};
  static const char *const shares[] = {"0.4", "0.8", "1.0", "1.0", "1.0", "1.0"};
  const char *results = in_folder("sampled.jsonl");
  command c = RUN(0, "bench", "sampled", "--device", "host", "--samples", "2", "-n", "8", "--out", results,
                  "uniform:rows=60,d=40");
  assert_int_equal(count_lines(c.out, "uniform:rows=60,d=40"), 12);
  char *text = text_of(results), *rest = text;
  for (int i = 0; i < 12; i++) {
    char *line = strsep(&rest, "\n");
    assert_true(line && json_is_valid(line));
    assert_json(line, {"$.suite", "sampled"}, {"$.n", "8"}, {"$.strategy", strategies[i / 6]}, {"$.s", widths[i % 6]},
                {"$.kept_share", shares[i % 6]}, {"$.cusparse_error", "cuSPARSE is for GPUs"});
    assert_null(json_at(line, "$.best_cusparse_us"));
    assert_true(json_number_at(line, "$.us") > 0);
    assert_true(json_number_at(line, "$.exact_us") > 0);
    assert_true(json_number_at(line, "$.presampled_us") > 0);
    assert_true(json_number_at(line, "$.max_rel_err") < 1e-6);
    assert_true(json_number_at(line, "$.presampled_max_rel_err") < 1e-6);
    assert_json(line, {"$.failed", "{}"}, {"$.presampled_failed", "{}"});
  }
  assert_true(rest && !*rest);
  free(text);

  c = RUN(0, "bench", "sampled", "--device", "host", "-n", "8", "--out", results,
          "uniform:rows=60,d=40"); /* the file already has this case */
  assert_int_equal(count_lines(c.out, "uniform:rows=60,d=40"), 0);
}

TEST(papers_need_a_gpu) {
  const char *results = in_folder("papers.jsonl");
  command c = RUN(1, "bench", "papers", "--device", "host", "-n", "16", "--out", results, "uniform:rows=60,d=4");
  assert_contains(c.err, "uniform:rows=60,d=4, n = 16: ", "--device cuda");
  FREED char *text = text_of(results);
  assert_string_equal(text, "");
  c = RUN(0, "bench", "--help");
  assert_contains(c.out, "\n  papers ", "\n  sampled ");
}

GROUP(home_begin, folder_end)
