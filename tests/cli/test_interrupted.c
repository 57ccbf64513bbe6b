/* A tuner that is killed, interrupted, or not alone. The command prints one line a measurement after it is on
 * the disk, so the lines tell what the database must hold at least. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/command.h"
#include "support/db_fixture.h"

#define MATRIX "uniform:rows=3000,d=12"

static void pause_ms(int milliseconds) {
  nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000L}, NULL);
}

/* First looks in the database, which must be whole; only these are told by lines of their own. */
static int64_t stored(const char *database) {
  wlm_store *store;
  wlm_measurement_record *records;
  int64_t count, looks = 0;
  wlm_text report = {0};
  wlm_status status = wlm_store_open(database, WLM_STORE_READ, &store);
  if (status == WLM_ERR_NOT_FOUND) return 0; /* killed before it was made */
  assert_status(WLM_OK, status);
  if (wlm_store_check(store, &report) != WLM_OK) fail_msg("%s", report.data);
  assert_status(WLM_OK, wlm_store_load(store, NULL, &records, &count));
  for (int64_t i = 0; i < count; i++) looks += records[i].samples < WLM_PRECISE_SAMPLES;
  wlm_measurements_free(records, count);
  wlm_text_release(&report);
  wlm_store_close(store);
  return looks;
}

/* "tune LABEL n=16 3/5 host_row/..." */
static int64_t told(const char *text) { return count_lines(text, " us (best "); }

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* A first run, left alone, fills the kernel cache and tells how long the others would take. */
static void killed(void **state) {
  (void)state;
  uint64_t random = 5;
  int64_t before = 0, while_measuring = 0;
  double began = 0;
  int whole_ms = 0;
  char database[320];
  snprintf(database, sizeof database, "%s/killed.db", folder.path);
  for (int round = 0; round < 12; round++) {
    command c;
    if (round == 1) began = seconds();
    command_begin(&c, &folder, "tune", MATRIX, "-n", "16,32", "--device", "host", "--db", database, "--again");
    if (round > 1) {
      pause_ms((int)(draw(&random) % (uint64_t)whole_ms));
      kill(c.process, SIGKILL);
    }
    command_wait(&c);
    if (round == 1) whole_ms = 1 + (int)(1e3 * (seconds() - began));
    assert_true(c.code == 0 || (round > 1 && c.code == -SIGKILL));
    int64_t now = stored(database), lines = told(c.err);
    if (now - before != lines && (c.code == 0 || now - before < lines))
      fail_msg("%lld lines, %lld measurements", (long long)lines, (long long)(now - before));
    while_measuring += c.code && lines;
    before = now;
    command_release(&c);
  }
  print_message("%lld of 10 killed while measuring\n", (long long)while_measuring);
}

/* After a kill the same command measures what is missing and comes to its end; once there it has nothing to do. */
static void gone_on_with(void **state) {
  (void)state;
  uint64_t random = 9;
  command c;
  char database[320];
  snprintf(database, sizeof database, "%s/gone-on.db", folder.path);
  int64_t before = 0, now = 0;
  for (int round = 0; round < 6; round++) {
    command_begin(&c, &folder, "tune", MATRIX, "-n", "24", "--device", "host", "--db", database);
    if (round < 4) {
      pause_ms(50 + (int)(draw(&random) % 400));
      kill(c.process, SIGKILL);
    }
    command_wait(&c);
    now = stored(database);
    assert_true(now >= before + told(c.err));
    if (round == 4) assert_int_equal(c.code, 0);
    if (round == 5) {
      assert_int_equal(told(c.err), 0);
      assert_int_equal(now, before);
      assert_contains(c.out, "choice");
    }
    before = now;
    command_release(&c);
  }
  assert_true(now >= 5);
}

static void interrupted(void **state) {
  (void)state;
  command c;
  char database[320];
  snprintf(database, sizeof database, "%s/interrupted.db", folder.path);
  command_begin(&c, &folder, "tune", MATRIX, "-n", "16,32,64,128,256,512", "--device", "host", "--db", database);
  for (int64_t lines = 0; lines < 2; pause_ms(10)) {
    char *text = text_of(c.err_path);
    lines = told(text);
    free(text);
  }
  kill(c.process, SIGINT);
  command_wait(&c);
  assert_int_equal(c.code, 1);
  assert_contains(c.err, "interrupted");
  assert_contains(c.err, "kept");
  assert_true(told(c.err) >= 2);
  assert_true(stored(database) >= told(c.err)); /* what was on its way when it was interrupted is kept, too */
  assert_contains(c.out, "choice");             /* what was measured is told as usual */
  command_release(&c);
}

static void four_at_once(void **state) {
  (void)state;
  enum { PROCESSES = 4 };
  command c[PROCESSES];
  int64_t lines = 0;
  char database[320];
  snprintf(database, sizeof database, "%s/shared.db", folder.path);
  for (int i = 0; i < PROCESSES; i++) {
    char seed[2] = {(char)('1' + i), 0};
    command_begin(&c[i], &folder, "tune", MATRIX, "-n", "16,32", "--device", "host", "--db", database, "--seed", seed,
                  "--again");
  }
  for (int i = 0; i < PROCESSES; i++) {
    command_wait(&c[i]);
    if (c[i].code) fail_msg("%s", c[i].err);
    lines += told(c[i].err);
    command_release(&c[i]);
  }
  assert_true(lines > PROCESSES * 8);
  assert_int_equal(stored(database), lines);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(killed),
      cmocka_unit_test(gone_on_with),
      cmocka_unit_test(interrupted),
      cmocka_unit_test(four_at_once),
  };
  return cmocka_run_group_tests(tests, home_begin, folder_end);
}
