/* A merge writes the whole file or none: if it is killed, if the disk is full, if another process created the file
 * first. WARPLOOM_FULL: ten times as many kills. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/db_fixture.h"
#include "support/test.h"

enum { EACH = 400, KILLS = 20 };
static int kills(void) { return getenv("WARPLOOM_FULL") ? 10 * KILLS : KILLS; }

static char parts[2][320], merged[320];

static int setup(void **state) {
  folder_begin_in_memory(state);
  for (int i = 0; i < 2; i++) {
    snprintf(parts[i], sizeof parts[i], "%s/part-%d.db", folder.path, i);
    OWN(wlm_store, store, wlmi_store_open(parts[i], WLMI_STORE_WRITE, &store));
    for (int64_t k = 0; k < EACH; k += 20) {
      wlmi_measurement_record records[20];
      for (int64_t j = 0; j < 20; j++) records[j] = sample_measurement(i * EACH + k + j);
      assert_status(WLM_OK, wlmi_store_put(store, records, 20));
    }
  }
  snprintf(merged, sizeof merged, "%s/merged.db", folder.path);
  return 0;
}

static wlm_status merge(void) {
  int64_t measurements;
  return wlmi_store_merge_files((const char *[]){parts[0], parts[1]}, 2, merged, NULL, &measurements);
}

/* Whether the merged file exists; if it does, it must be complete. */
static int is_there(void) {
  wlmi_text faults = {0};
  int64_t count = 0;
  if (access(merged, F_OK)) return 0;
  OWN(wlm_store, store, wlmi_store_open(merged, WLMI_STORE_READ, &store));
  assert_status(WLM_OK, each_measurement(store, NULL, must_be_sample, &count));
  assert_int_equal(count, 2 * EACH);
  assert_status(WLM_OK, wlmi_store_check(store, &faults));
  return 1;
}

/* Counts the files in the folder other than the two sources. */
static int others(void) {
  int count = -2;
  DIR *list = opendir(folder.path);
  for (struct dirent *entry; (entry = readdir(list));) count += *entry->d_name != '.';
  closedir(list);
  return count;
}

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

TEST(killed) {
  uint64_t seed = 3;
  int there = 0;
  const double began = seconds();
  assert_status(WLM_OK, merge());
  const int64_t whole_ns = (int64_t)(1e9 * (seconds() - began)) + 1;
  assert_int_equal(others(), 1);
  assert_true(is_there());
  for (int i = 0; i < kills(); i++) {
    int result;
    unlink(merged);
    pid_t child = fork();
    if (child == 0) _exit(merge() == WLM_OK ? 0 : 1);
    const int64_t wait = (int64_t)(draw(&seed) % (uint64_t)whole_ns) * 2;
    nanosleep(&(struct timespec){wait / 1000000000, wait % 1000000000}, NULL);
    kill(child, SIGKILL);
    assert_int_equal(child, waitpid(child, &result, 0));
    assert_true(WIFSIGNALED(result) || WEXITSTATUS(result) == 0);
    const int now = is_there();
    if (WIFEXITED(result)) assert_true(now);
    there += now;
    if (now)
      assert_status(WLM_ERR_INVALID_ARGUMENT, merge());
    else
      assert_status(WLM_OK, merge()); /* repeating the command succeeds */
    assert_true(is_there());
  }
  print_message("%d of %d killed before the file was there\n", kills() - there, kills());
  assert_true(there < kills());
}

TEST(on_a_full_disk) {
  pid_t child = fork();
  if (child == 0) {
    const struct rlimit limit = {100000, 100000};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit)) _exit(1);
    if (merge() != WLM_ERR_IO) _exit(2);
    if (strncmp(wlm_error_detail(), merged, strlen(merged)) || wlm_error_detail()[strlen(merged)] != ':') _exit(3);
    _exit(others() ? 4 : 0); /* neither the merged file nor a temporary one remains */
  }
  int result;
  assert_int_equal(child, waitpid(child, &result, 0));
  assert_true(WIFEXITED(result));
  assert_int_equal(WEXITSTATUS(result), 0);
  assert_status(WLM_OK, merge());
  assert_true(is_there());
}

/* Several processes merge into one name at once. One succeeds, the others get an error, and the file is complete. */
TEST(only_one_merger_succeeds) {
  enum { MERGERS = 4 };
  int done = 0;
  for (int i = 0; i < MERGERS; i++)
    if (fork() == 0) {
      wlm_status status = merge();
      _exit(status == WLM_OK ? 0 : status == WLM_ERR_INVALID_ARGUMENT ? 1 : 2);
    }
  for (int i = 0; i < MERGERS; i++) {
    int result;
    assert_true(wait(&result) > 0);
    assert_true(WIFEXITED(result));
    assert_in_range(WEXITSTATUS(result), 0, 1);
    done += WEXITSTATUS(result) == 0;
  }
  assert_int_equal(done, 1);
  assert_int_equal(others(), 1);
  assert_true(is_there());
}

EACH(setup, folder_end)
