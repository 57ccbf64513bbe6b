/* The suites of the two papers on the host device, and the summaries of their results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "support/command.h"

/* Every row has 40 edges, so S = 16 and 32 keep some of them and larger S keep all. */
static void samples_by_both_strategies(void **state) {
  (void)state;
  static const char *const strategies[] = {"bucket", "fastrand"};
  static const char *const widths[] = {"16", "32", "64", "128", "256", "512"};
  static const char *const shares[] = {"0.4", "0.8", "1.0", "1.0", "1.0", "1.0"};
  command c;
  char results[320];
  snprintf(results, sizeof results, "%s", folder_file(&folder, "sampled.jsonl"));
  command_expect(&c, &folder, 0, "bench", "sampled", "--device", "host", "--samples", "2", "-n", "8", "--out", results,
                 "uniform:rows=60,d=40");
  assert_int_equal(count_lines(c.out, "uniform:rows=60,d=40"), 12);
  command_release(&c);
  char *text = text_of(results), *rest = text;
  for (int i = 0; i < 12; i++) {
    char *line = strsep(&rest, "\n");
    assert_true(line && json_is_valid(line));
    assert_json_at(line, "$.suite", "sampled");
    assert_json_at(line, "$.n", "8");
    assert_json_at(line, "$.strategy", strategies[i / 6]);
    assert_json_at(line, "$.s", widths[i % 6]);
    assert_json_at(line, "$.kept_share", shares[i % 6]);
    assert_json_at(line, "$.cusparse_error", "cuSPARSE is for GPUs");
    assert_null(json_at(line, "$.best_cusparse_us"));
    assert_true(json_number_at(line, "$.us") > 0);
    assert_true(json_number_at(line, "$.exact_us") > 0);
    assert_true(json_number_at(line, "$.presampled_us") > 0);
    assert_true(json_number_at(line, "$.max_rel_err") < 1e-6);
    assert_true(json_number_at(line, "$.presampled_max_rel_err") < 1e-6);
    assert_json_at(line, "$.failed", "{}");
    assert_json_at(line, "$.presampled_failed", "{}");
  }
  assert_true(rest && !*rest);
  free(text);

  command_expect(&c, &folder, 0, "bench", "sampled", "--device", "host", "-n", "8", "--out", results,
                 "uniform:rows=60,d=40"); /* the file already has this case */
  assert_int_equal(count_lines(c.out, "uniform:rows=60,d=40"), 0);
  command_release(&c);
}

static void papers_need_a_gpu(void **state) {
  (void)state;
  command c;
  char results[320];
  snprintf(results, sizeof results, "%s", folder_file(&folder, "papers.jsonl"));
  command_expect(&c, &folder, 1, "bench", "papers", "--device", "host", "-n", "16", "--out", results,
                 "uniform:rows=60,d=4");
  assert_contains(c.err, "uniform:rows=60,d=4, n = 16: ");
  assert_contains(c.err, "--device cuda");
  command_release(&c);
  char *text = text_of(results);
  assert_string_equal(text, "");
  free(text);
  command_expect(&c, &folder, 0, "bench", "--help");
  assert_contains(c.out, "\n  papers ");
  assert_contains(c.out, "\n  sampled ");
  command_release(&c);
}

/* A script that replaces ncu and prints in ncu's format. */
static void reads_counters_by_ncu(void **state) {
  (void)state;
  static const char script[] =
      "#!/bin/sh\n"
      "case \"$*\" in\n"
      "*row_naive*) echo '==ERROR== no such thing'; exit 1;;\n"
      "*cf=8*) echo 'nothing profiled'; exit 0;;\n"
      "*compare*) echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1;;\n"
      "esac\n"
      "echo '==PROF== Connected to process 1'\n"
      "echo '\"ID\",\"Kernel Name\",\"launch__registers_per_thread\","
      "\"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum\",\"lts__t_bytes.sum.per_second\"'\n"
      "echo '\"\",\"\",\"register/thread\",\"sector\",\"byte/second\"'\n"
      "echo '\"0\",\"wlm_row_crc(wlm_args, int)\",\"40\",\"54,800,123\",\"2500000000\"'\n";
  command c;
  char results[320], *usual = strdup(getenv("PATH"));
  snprintf(results, sizeof results, "%s", folder_file(&folder, "counters.jsonl"));
  setenv("PATH", folder_file(&folder, "nowhere"), 1);
  command_expect(&c, &folder, 1, "bench", "counters", "--device", "host", "-n", "64", "--out", results,
                 "uniform:rows=60,d=4");
  assert_contains(c.err, "no counters: ncu was not found in PATH");
  command_release(&c);
  char *text = text_of(results);
  assert_string_equal(text, "");
  free(text);

  write_whole(folder_file(&folder, "ncu"), script, strlen(script));
  assert_int_equal(chmod(folder_file(&folder, "ncu"), 0700), 0);
  char path[1024];
  snprintf(path, sizeof path, "%s:%s", folder.path, usual);
  setenv("PATH", path, 1);
  command_expect(&c, &folder, 0, "bench", "counters", "--device", "host", "-n", "64", "--out", results,
                 "uniform:rows=60,d=4");
  command_release(&c);
  setenv("PATH", usual, 1);
  free(usual);
  text = text_of(results);
  assert_true(json_is_valid(text));
  assert_json_at(text, "$.suite", "counters");
  assert_true(json_number_at(text, "$.load_sectors.crc") == 54800100); /* all digits of a large counter */
  assert_true(json_number_at(text, "$.l2_gbs.cwm4") == 2.5);
  assert_json_at(text, "$.registers.cwm2", "40");
  assert_null(json_at(text, "$.load_sectors.algorithm1"));
  assert_null(json_at(text, "$.occupancy.crc"));
  assert_json_at(text, "$.failed.algorithm1", "ncu: no such thing");
  assert_json_at(text, "$.failed.cwm8", "ncu profiled no kernel (exit code 0)");
  assert_json_at(text, "$.failed.cusparse", "the driver does not permit this user to read counters (ERR_NVGPUCTRPERM)");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_by_both_strategies),
      cmocka_unit_test(papers_need_a_gpu),
      cmocka_unit_test(reads_counters_by_ncu),
  };
  return cmocka_run_group_tests(tests, home_begin, folder_end);
}
