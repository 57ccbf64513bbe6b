/* The built-in table: what to run where nothing was measured. */
#ifndef WLM_RUNTIME_DISPATCH_RULES_H
#define WLM_RUNTIME_DISPATCH_RULES_H

#include "common/program.h"

typedef struct wlm_rule {
  wlm_target target;
  int sampled;
  int64_t max_n;     /* holds for n <= max_n */
  double min_cv;     /* and cv >= min_cv */
  int64_t max_nnz;   /* and nnz <= max_nnz */
  int64_t min_calls; /* and expected_calls >= min_calls; 1 = any, above 1 a variant that is prepared may stand here */
  const char *variant;
  const char *why;
} wlm_rule;

extern const wlm_rule wlm_rules[];
extern const int wlm_rule_count;

#endif
