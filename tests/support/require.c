#include "support/require.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/nvrtc.h"
#include "support/asserts.h"
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

void test_needs_nvrtc(void) {
  int major, minor;
  if (wlmi_nvrtc_version(&major, &minor) != WLM_OK) test_missing("nvrtc", "NVRTC", wlm_error_detail());
}
