/* The results file of bench: lines are appended whole or not at all, and what was there stays. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/results_file.h"
#include "support/folder.h"
#include "support/test.h"

static const char first[] = "{\"suite\":\"core\",\"device\":\"d\",\"matrix\":\"a\",\"n\":8,\"us\":1}\n";

static void assert_content(const char *expected) {
  size_t size;
  FREED unsigned char *content = read_whole(folder.file, &size);
  if (size != strlen(expected) || memcmp(content, expected, size)) fail_msg("%.*s", (int)size, (char *)content);
}

static wlm_status append(wlmi_results *results, const char *line) {
  HELD(wlmi_text) text = {0};
  wlmi_text_puts(&text, line);
  const wlm_status status = wlmi_results_append(results, &text);
  return status;
}

TEST(an_unfinished_line_is_cut_off) {
  wlmi_results results;
  char whole[256];
  folder_file(&folder, "results.jsonl");
  for (size_t cut = 1; cut < sizeof first - 1; cut++) {
    const int size = snprintf(whole, sizeof whole, "%s%.*s", first, (int)cut, first);
    write_whole(folder.file, whole, (size_t)size);
    assert_status(WLM_OK, wlmi_results_open(folder.file, &results));
    assert_true(wlmi_results_has(&results, "core", "d", "a", 8));
    assert_false(wlmi_results_has(&results, "core", "d", "a", 16));
    wlmi_results_close(&results);
    assert_content(first);
  }
}

TEST(other_files_are_not_touched) {
  static const char *const contents[] = {"notes", "notes\n", "{\"suit\n", "\n"};
  wlmi_results results;
  folder_file(&folder, "notes");
  for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
    write_whole(folder.file, contents[i], strlen(contents[i]));
    assert_status(WLM_ERR_PARSE, wlmi_results_open(folder.file, &results));
    wlmi_results_close(&results);
    assert_content(contents[i]);
  }
}

/* A limit on the size of files stands for a full disk. */
TEST(a_line_that_does_not_fit_is_taken_back) {
  struct rlimit before, limit;
  folder_file(&folder, "results.jsonl");
  write_whole(folder.file, first, strlen(first));
  getrlimit(RLIMIT_FSIZE, &before);
  limit = before;
  limit.rlim_cur = 2 * strlen(first) - 10;
  signal(SIGXFSZ, SIG_IGN);
  GET(wlmi_results, results, wlmi_results_open(folder.file, &results));
  setrlimit(RLIMIT_FSIZE, &limit);
  const wlm_status status = append(&results, first);
  setrlimit(RLIMIT_FSIZE, &before);
  assert_status(WLM_ERR_IO, status);
  assert_content(first);
  assert_status(WLM_OK, append(&results, first));
  wlmi_results_close(&results);
  size_t size;
  free(read_whole(folder.file, &size));
  assert_int_equal(size, 2 * strlen(first));
}

/* Two runs on two devices may share a file. */
TEST(two_runs_keep_each_others_lines) {
  wlmi_results results[2];
  char expected[256];
  folder_file(&folder, "results.jsonl");
  for (int i = 0; i < 2; i++) assert_status(WLM_OK, wlmi_results_open(folder.file, &results[i]));
  for (int i = 0; i < 2; i++) assert_status(WLM_OK, append(&results[i], first));
  for (int i = 0; i < 2; i++) wlmi_results_close(&results[i]);
  snprintf(expected, sizeof expected, "%s%s", first, first);
  assert_content(expected);
}

TEST(a_pipe_is_written_and_not_read) {
  char got[256] = "";
  struct stat info;
  assert_int_equal(mkfifo(folder_file(&folder, "pipe"), 0600), 0);
  const int reader = open(folder.file, O_RDONLY | O_NONBLOCK);
  GET(wlmi_results, results, wlmi_results_open(folder.file, &results));
  assert_status(WLM_OK, append(&results, first));
  wlmi_results_close(&results);
  assert_int_equal(read(reader, got, sizeof got - 1), strlen(first));
  assert_string_equal(got, first);
  close(reader);
  assert_int_equal(lstat(folder.file, &info), 0);
  assert_true(S_ISFIFO(info.st_mode));
}

EACH(folder_begin, folder_end)
