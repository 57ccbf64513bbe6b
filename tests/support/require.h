/* Tests of what not every machine has. */
#ifndef WLM_TESTS_REQUIRE_H
#define WLM_TESTS_REQUIRE_H

/* Ends the running cmocka test: "SKIPPED: no GPU: reason" on stderr and a skip, or a failure where the environment
 * variable WARPLOOM_REQUIRE, a list such as "nvrtc,gpu", names `key`. */
void test_missing(const char *key, const char *what, const char *reason);

/* test_missing("nvrtc", ...) where there is no NVRTC. */
void test_needs_nvrtc(void);

#endif
