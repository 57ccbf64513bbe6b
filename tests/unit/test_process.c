/* Running other programs: how they are found, their exit status in programs that lose it, and ending all of them. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/process.h"
#include "support/script.h"
#include "support/test.h"

static void assert_found(const char *name, const char *expected) {
  HELD(wlmi_text) path = {0};
  wlmi_process_find(name, &path);
  assert_string_equal(path.size ? path.data : "", expected);
}

/* clearenv sets environ to NULL. */
TEST(programs_run_without_an_environment) {
  char **const usual = environ;
  char *argv[] = {"/bin/true", NULL};
  environ = NULL;
  const int result = wlmi_process_run(&(wlmi_process){.argv = argv, .temporary = "/tmp"});
  environ = usual;
  assert_int_equal(result, 0);
}

/* A program is looked for in all folders of PATH, in their order. */
TEST(programs_are_found) {
  FREED char *usual = getenv("PATH") ? strdup(getenv("PATH")) : NULL;
  char path[1200];
  folder_begin(state);
  const char *first = in_folder("first"), *second = in_folder("second");
  assert_true(mkdir(first, 0700) == 0 && mkdir(second, 0700) == 0);
  snprintf(path, sizeof path, "/no/such/folder:%s:%s", first, second);
  setenv("PATH", path, 1);
  assert_found("warploom-cc", "");
  snprintf(path, sizeof path, "%s/warploom-cc", second);
  write_whole(path, "", 0);
  assert_found("warploom-cc", ""); /* it is no program */
  assert_int_equal(chmod(path, 0700), 0);
  assert_found("warploom-cc", path);
  snprintf(path, sizeof path, "%s/warploom-cc", first);
  write_whole(path, "", 0);
  assert_int_equal(chmod(path, 0700), 0);
  assert_found("warploom-cc", path);
  assert_found("./warploom-cc", "./warploom-cc"); /* with a slash it is a path */
  if (usual) setenv("PATH", usual, 1);
  folder_end(state);
}

/* ---- exit statuses --------------------------------------------------------------------------------------- */

static int run_shell(const char *text, double seconds) {
  char *argv[] = {"/bin/sh", "-c", (char *)text, NULL};
  return wlmi_process_run(&(wlmi_process){.argv = argv, .temporary = "/tmp", .seconds = seconds});
}

/* Each way to end has its own result. Returns the number of the first wrong one, or 0. */
static int check_results(void) {
  char *none[] = {"/no/such/program", NULL};
  if (run_shell("exit 3", 0) != 3) return 1;
  if (run_shell("exit 0", 0) != 0) return 2;
  if (run_shell("kill -9 $$", 0) != WLMI_PROCESS_KILLED) return 3;
  if (run_shell("sleep 1000", 0.1) != WLMI_PROCESS_TOO_LONG) return 4;
  if (wlmi_process_run(&(wlmi_process){.argv = none}) != WLMI_PROCESS_MISSING) return 5;
  return 0;
}

/* Runs the checks in a child, because what it changes stays. */
static void in_child(int (*checks)(void)) {
  int result = -1;
  const pid_t child = fork();
  if (!child) _exit(checks());
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result));
  assert_int_equal(WEXITSTATUS(result), 0);
}

static int ignoring(void) {
  signal(SIGCHLD, SIG_IGN);
  return check_results();
}

static void *wait_for_all(void *unused) {
  (void)unused;
  for (;;)
    if (waitpid(-1, NULL, 0) < 0) sched_yield();
  return NULL;
}

static int waiting(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, wait_for_all, NULL) ? 100 : check_results();
}

TEST(statuses_are_told_apart) { in_child(check_results); }

TEST(ignoring_the_end_of_children_loses_no_status) { in_child(ignoring); }

TEST(waiting_for_all_children_loses_no_status) { in_child(waiting); }

/* ---- ending all ------------------------------------------------------------------------------------------ */

static void *run_long(void *result) {
  *(int *)result = run_shell("echo $$ > $D/started; sleep 1000", 30);
  return NULL;
}

/* More programs than are noted at a time have ended before. */
static int ending_all(void) {
  enum { EARLIER = 300 };
  pthread_t thread;
  int result = 0;
  for (int i = 0; i < EARLIER; i++)
    if (run_shell(":", 0)) return 1;
  if (pthread_create(&thread, NULL, run_long, &result)) return 2;
  script_wait_for_start(&folder, "started");
  wlmi_process_end_all();
  pthread_join(thread, NULL);
  if (result != WLMI_PROCESS_KILLED) return 3;
  return run_shell(":", 0) == WLMI_PROCESS_KILLED ? 0 : 4; /* no other one starts */
}

TEST(all_that_run_are_ended) {
  folder_begin(state);
  setenv("D", folder.path, 1);
  in_child(ending_all);
  folder_end(state);
}
