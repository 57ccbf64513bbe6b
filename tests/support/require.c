#include "support/require.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cuda/nvrtc.h"
#include "warploom/warploom.h"

static int is_required(const char *key) {
  const char *list = getenv("WARPLOOM_REQUIRE");
  while (list && *list) {
    size_t size = strcspn(list, ",");
    if (size == strlen(key) && !strncmp(list, key, size)) return 1;
    list += size + (list[size] == ',');
  }
  return 0;
}

static int missing; /* the number of tests that ended in test_missing */

void test_missing(const char *key, const char *what, const char *reason) {
  if (is_required(key)) fail_msg("WARPLOOM_REQUIRE asks for %s, but there is none: %s", what, reason);
  fprintf(stderr, "SKIPPED: no %s: %s\n", what, reason);
  missing++;
  skip();
}

int test_exit_status(int failures, int tests) { return !failures && missing == tests ? MISSING : failures; }

int test_run_part(test_shard shard, const struct CMUnitTest *tests, int count, int (*setup)(void **state),
                  int (*teardown)(void **state)) {
  const int64_t own = test_shard_count(shard, count);
  struct CMUnitTest *part = calloc((size_t)count, sizeof *part);
  if (!part) abort();
  for (int64_t k = 0; k < own; k++) part[k] = tests[test_shard_index(shard, k)];
  const int failures = _cmocka_run_group_tests("tests", part, (size_t)own, setup, teardown);
  free(part);
  return test_exit_status(failures, (int)own);
}

void test_needs_nvrtc(void) {
  int major, minor;
  if (wlmi_nvrtc_version(&major, &minor) != WLM_OK) test_missing("nvrtc", "NVRTC", wlm_error_detail());
}
