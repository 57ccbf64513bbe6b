/* What the stress programs share: counted failures, and contexts of the host device that use one database and one
 * kernel cache. */
#pragma once

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/defaults.h"
#include "support/folder.h"
#include "warploom/warploom_tune.h"

static atomic_int failures;

static inline void check(wlm_status status, const char *what) {
  if (status == WLM_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, wlm_status_name(status), wlm_error_detail());
  failures++;
}

/* ThreadSanitizer does not see the barriers of libgomp, which is not instrumented. */
static inline void begin_again_without_openmp(char **argv) {
  if (getenv("OMP_NUM_THREADS")) return;
  setenv("OMP_NUM_THREADS", "1", 1);
  execv("/proc/self/exe", argv);
}

/* Call folder_begin first. */
static inline wlm_context_options options_in_folder(void) {
  static char database[400], cache[400];
  snprintf(database, sizeof database, "%s/tuned.db", folder.path);
  snprintf(cache, sizeof cache, "%s/kernels.db", folder.path);
  return (wlm_context_options)BARE_OPTIONS(.device = "host", .database = database, .kernel_cache = cache);
}

static inline wlm_problem problem_of(int64_t n) { return (wlm_problem)PROBLEM(.n = n); }
