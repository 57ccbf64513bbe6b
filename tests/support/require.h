/* Skips tests for missing tools and devices, or fails them if WARPLOOM_REQUIRE names them. */
#pragma once

/* Ends the running cmocka test: prints "SKIPPED: no GPU: reason" on stderr and skips. If the environment variable
 * WARPLOOM_REQUIRE, a list such as "nvrtc,gpu", contains `key`, the test fails instead. */
void test_missing(const char *key, const char *what, const char *reason);

/* Calls test_missing("nvrtc", ...) if NVRTC is missing. */
void test_needs_nvrtc(void);

/* A program's exit code: the number of failures, or MISSING if every one of its tests ended in test_missing. */
enum { MISSING = 77 }; /* equals SKIP_RETURN_CODE in tests/CMakeLists.txt */
int test_exit_status(int failures, int tests);
