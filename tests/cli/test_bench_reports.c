/* warploom bench summary and plot on hand-made results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "support/command.h"
#include "support/require.h"

static const char result_lines[] =
    "{\"suite\":\"core\",\"matrix\":\"cora\",\"rows\":10,\"nnz\":40,\"n\":32,\"us\":2.0,\"variant\":\"v/x=1\","
    "\"prepared_us\":1.0,\"prepared_variant\":\"w/x=1\",\"prepare_us\":30.0,\"chosen_us\":3.0,\"ge_spmm_us\":8.0,"
    "\"cusparse\":{\"default_nopre\":6.0,\"default\":6.0,\"alg1_nopre\":4.0,\"alg1\":null,\"alg3_nopre\":null,"
    "\"alg3\":0.5},\"gather_gbs\":9000.0}\n"
    "{\"suite\":\"core\",\"matrix\":\"twin:reddit\",\"rows\":10,\"nnz\":400,\"n\":128,\"us\":2.0,\"variant\":\"v/x=1\","
    "\"prepared_us\":2.0,\"prepared_variant\":\"v/x=1\",\"prepare_us\":0.0,\"chosen_us\":2.0,\"ge_spmm_us\":2.0,"
    "\"cusparse\":{\"default_nopre\":16.0,\"default\":20.0},\"gather_gbs\":9000.0}\n";

static void summarises(void **state) {
  (void)state;
  command c;
  char results[320];
  snprintf(results, sizeof results, "%s", folder_file(&folder, "summary.jsonl"));
  write_whole(results, result_lines, strlen(result_lines));
  command_expect(&c, &folder, 0, "bench", "summary", results);
  assert_contains(c.out,
                  "| cora | 32 | 4.0 | `v/x=1` | 2.0 | 4.0 (alg1_nopre) | 2.00x | `w/x=1` | 1.0 after 30 | "
                  "0.5 (alg3) | 0.50x | 3.0 | 8.0 |");
  /* The fastest of all cuSPARSE algorithms needs no preprocessing in these results. */
  assert_contains(c.out,
                  "| twin:reddit | 128 | 40.0 | `v/x=1` | 2.0 | 16.0 (default_nopre) | 8.00x | same | 2.0 | "
                  "16.0 (default_nopre) | 8.00x | 2.0 | 2.0 |");
  assert_contains(c.out, "2 cases");
  assert_contains(c.out, "without preprocess | 2 | 4.00x | 2.00x (cora, N = 32), 8.00x (twin:reddit, N = 128) |");
  assert_contains(c.out, "preprocess kept | 2 | 2.00x | 0.50x (cora, N = 32), 8.00x (twin:reddit, N = 128) |");
  assert_contains(c.out, "default without preprocess | 2 | 4.90x | 3.00x (cora, N = 32),"); /* sqrt(3 * 8) */
  assert_contains(c.out, "our GE-SpMM (row_crc) | 2 | 2.00x | 1.00x (twin:reddit, N = 128),");
  /* the largest ratio */
  assert_contains(c.out, "best unprepared | 2 | 1.22x | 1.50x (cora, N = 32), 1.00x (twin:reddit");
  assert_contains(c.out, "| N = 32 | 2.00 | 1.0 | 0.5 |");
  assert_contains(c.out, "9.00 TB/s unprepared, 9.00 TB/s prepared");
  command_release(&c);
  command_expect(&c, &folder, 0, "bench", "summary", results, "--json");
  assert_json_at(c.out, "$.tables[0].titles[0]", "matrix");
  assert_json_at(c.out, "$.tables[0].rows[1][0]", "twin:reddit");
  assert_json_at(c.out, "$.tables[0].rows[1][1]", "128");
  assert_json_at(c.out, "$.lines[0]", "2 cases.");
  command_release(&c);
  write_whole(results, "{}\n", 3);
  command_expect(&c, &folder, 1, "bench", "summary", results);
  assert_contains(c.err, "summary.jsonl:1");
  command_release(&c);
  command_expect(&c, &folder, 2, "bench", "summary");
  command_release(&c);
}

/* The summary lists the five worst of more than five cases, the worst first. */
static void summary_lists_the_worst_five(void **state) {
  (void)state;
  static const double times[] = {7, 3, 9, 2, 8, 4, 6};
  command c;
  char results[320], lines[4096] = "";
  for (int i = 0; i < 7; i++)
    sprintf(lines + strlen(lines),
            "{\"matrix\":\"m%.0f\",\"rows\":1,\"nnz\":1,\"n\":1,\"us\":1.0,\"variant\":\"v\",\"ge_spmm_us\":%.1f}\n",
            times[i], times[i]);
  snprintf(results, sizeof results, "%s", folder_file(&folder, "worst.jsonl"));
  write_whole(results, lines, strlen(lines));
  command_expect(&c, &folder, 0, "bench", "summary", results);
  assert_contains(c.out,
                  "| 2.00x (m2, N = 1), 3.00x (m3, N = 1), 4.00x (m4, N = 1), 6.00x (m6, N = 1), "
                  "7.00x (m7, N = 1) |");
  command_release(&c);
}

#define CHOICE(n, mode, us, fixed)                                                         \
  "{\"suite\":\"selection\",\"matrix\":\"m\",\"n\":" n ",\"mode\":\"" mode "\",\"us\":" us \
  ",\"best_us\":2.0,\"best_fixed_us\":" fixed                                              \
  ",\"variant\":\"v/x=1\",\"best_variant\":\"w\",\"source\":\"model\",\"distance\":0.1}\n"

static void summarises_choices(void **state) {
  (void)state;
  static const char choices[] = CHOICE("16", "tuned", "2.0", "4.0") CHOICE("32", "tuned", "2.42", "null")
      CHOICE("16", "loo", "2.1", "2.1") CHOICE("16", "rule", "2.5", "4.0") CHOICE("32", "rule", "null", "4.0");
  command c;
  char results[320];
  snprintf(results, sizeof results, "%s", folder_file(&folder, "selection.jsonl"));
  write_whole(results, choices, strlen(choices));
  command_expect(&c, &folder, 0, "bench", "summary", results);
  assert_contains(c.out, "| m | 16 | tuned | model | `v/x=1` | 2.0 | 1.00x | 2.00x | `w` |");
  assert_contains(
      c.out,
      "| tuned | the choice over the best | 2 | 1.100x | at most 1.02x, missed | 1.21x (m, N = 32) | at most "
      "1.10x, missed |");
  assert_contains(c.out, "| tuned | the best fixed variant over the choice | 1 | 2.000x | at least 1.20x, met |");
  assert_contains(c.out,
                  "| loo | the choice over the best | 1 | 1.050x | at most 1.08x, met | 1.05x (m, N = 16) | at most "
                  "1.35x, met |");
  assert_contains(c.out, "| loo | the best fixed variant over the choice | 1 | 1.000x | at least 1.20x, missed |");
  assert_contains(c.out,
                  "| rule | the choice over the best | 1 | 1.250x | at most 1.25x, met | 1.25x (m, N = 16) | - |");
  assert_contains(c.out, "The worst, tuned: 1.21x (m, N = 32), 1.00x (m, N = 16)\n");
  command_release(&c);
}

/* A script that replaces gnuplot stores its input and makes the files that this names. */
static void plot_passes_the_points_to_gnuplot(void **state) {
  (void)state;
  command c;
  char results[320], prefix[320], script[1400], shown[320], *path = strdup(getenv("PATH"));
  snprintf(results, sizeof results, "%s", folder_file(&folder, "plot.jsonl"));
  snprintf(prefix, sizeof prefix, "%s", folder_file(&folder, "it's"));
  snprintf(shown, sizeof shown, "%s", folder_file(&folder, "shown"));
  write_whole(results, result_lines, strlen(result_lines));
  setenv("PATH", folder_file(&folder, "bin"), 1);
  mkdir(folder_file(&folder, "bin"), 0777);
  setenv("TMPDIR", folder_file(&folder, "it's a folder"), 1); /* the pictures are drawn there */
  mkdir(folder_file(&folder, "it's a folder"), 0777);
  command_expect(&c, &folder, 2, "bench", "plot", results, "-o", prefix);
  assert_contains(c.err, "apt-get install gnuplot-nox");
  command_release(&c);
  snprintf(
      script, sizeof script,
      "#!/bin/sh\n/bin/cat > '%s'\n/bin/sed -n \"s/^set output '\\(.*\\)'$/\\1/p\" '%s' | /bin/sed \"s/''/'/g\" |\n"
      "while read -r file; do echo drawn > \"$file\"; done\n",
      shown, shown);
  write_whole(folder_file(&folder, "bin/gnuplot"), script, strlen(script));
  chmod(folder_file(&folder, "bin/gnuplot"), 0777);
  command_expect(&c, &folder, 0, "bench", "plot", results, "-o", prefix);
  command_release(&c);
  char *given = text_of(shown);
  assert_contains(given, "$unprepared << END\n4 32 2.0000\n40 128 8.0000\nEND\n"); /* nnz/row, N, speed-up */
  assert_contains(given, "$prepared << END\n4 32 0.5000\n40 128 8.0000\nEND\n");
  assert_contains(given, "$unprepared_means << END\n32 2.0000\n128 8.0000\nEND\n");
  assert_contains(given, "it''s a folder/"); /* a quote in a file name does not end the string */
  static const char *const endings[] = {".svg", ".png"};
  for (int i = 0; i < 2; i++) {
    char picture[340];
    snprintf(picture, sizeof picture, "%s%s", prefix, endings[i]);
    char *drawn = text_of(picture);
    assert_string_equal(drawn, "drawn\n");
    free(drawn);
  }
  assert_contains(given, "set logscale xy");
  free(given);
  write_whole(folder_file(&folder, "bin/gnuplot"), "#!/bin/sh\nexit 3\n", 17);
  command_expect(&c, &folder, 1, "bench", "plot", results, "-o", prefix);
  assert_contains(c.err, "could not draw");
  command_release(&c);
  setenv("PATH", path, 1);
  unsetenv("TMPDIR");
  free(path);
  write_whole(results, "{}\n", 3);
  command_expect(&c, &folder, 1, "bench", "plot", results, "-o", prefix);
  assert_contains(c.err, "plot.jsonl:1");
  command_release(&c);
  command_expect(&c, &folder, 2, "bench", "plot", results);
  command_release(&c);
}

static void plot_draws(void **state) {
  (void)state;
  command c;
  char results[320], prefix[320];
  size_t size;
  snprintf(results, sizeof results, "%s", folder_file(&folder, "draw.jsonl"));
  snprintf(prefix, sizeof prefix, "%s", folder_file(&folder, "picture"));
  write_whole(results, result_lines, strlen(result_lines));
  command_run(&c, &folder, "bench", "plot", results, "-o", prefix);
  const int missing = c.code == 2;
  if (!missing && c.code) fail_msg("exit code %d\n%s", c.code, c.err);
  command_release(&c);
  if (missing) test_missing("gnuplot", "no gnuplot", "the pictures of bench plot are not drawn");
  unsigned char *png = read_whole(folder_file(&folder, "picture.png"), &size);
  assert_true(size > 1000);
  assert_memory_equal(png, "\x89PNG", 4);
  free(png);
  unsigned char *svg = read_whole(folder_file(&folder, "picture.svg"), &size);
  assert_true(size > 1000);
  assert_memory_equal(svg, "<?xml", 5);
  free(svg);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(summarises),         cmocka_unit_test(summary_lists_the_worst_five),
      cmocka_unit_test(summarises_choices), cmocka_unit_test(plot_passes_the_points_to_gnuplot),
      cmocka_unit_test(plot_draws),
  };
  return cmocka_run_group_tests(tests, home_begin, folder_end);
}
