/* Skips tests for missing tools and devices, or fails them if WARPLOOM_REQUIRE names them. */
#pragma once

#include "support/shard.h"

/* Ends the running cmocka test: prints "SKIPPED: no GPU: reason" on stderr and skips. If the environment variable
 * WARPLOOM_REQUIRE, a list such as "nvrtc,gpu", contains `key`, the test fails instead. */
void test_missing(const char *key, const char *what, const char *reason);

/* Calls test_missing("nvrtc", ...) if NVRTC is missing. */
void test_needs_nvrtc(void);

/* Runs the tests as a group of cmocka. Returns main's exit code: the number of failures, or MISSING if every test
 * ended in test_missing, so that ctest reports the program as skipped. */
#define test_group(tests, setup, teardown) \
  test_exit_status(cmocka_run_group_tests(tests, setup, teardown), (int)(sizeof(tests) / sizeof *(tests)))
/* The same for one part of the tests, if ctest runs the program as several tests; see support/shard.h. */
#define test_group_part(shard, tests, setup, teardown) \
  test_run_part(shard, tests, (int)(sizeof(tests) / sizeof *(tests)), setup, teardown)
struct CMUnitTest;
int test_run_part(test_shard shard, const struct CMUnitTest *tests, int count, int (*setup)(void **state),
                  int (*teardown)(void **state));
enum { MISSING = 77 }; /* equals SKIP_RETURN_CODE in tests/CMakeLists.txt */
int test_exit_status(int failures, int tests);
