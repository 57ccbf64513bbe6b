/* The built-in table: what to run where nothing was measured. */
#ifndef WLM_RUNTIME_DISPATCH_RULES_H
#define WLM_RUNTIME_DISPATCH_RULES_H

#include "common/program.h"

/* Of problems; the names stand for 0, 1 and 2. */
typedef enum wlm_rule_kind { WLM_RULE_PLAIN, WLM_RULE_SAMPLED, WLM_RULE_SDDMM } wlm_rule_kind;

typedef struct wlm_rule {
  wlm_target target;
  int kind;
  int64_t max_n;       /* holds for n <= max_n */
  double min_cv;       /* and cv >= min_cv */
  int64_t max_nnz;     /* and nnz <= max_nnz */
  int64_t min_calls;   /* and expected_calls >= min_calls; 1 = any, above 1 a variant that is prepared may stand here */
  const char *variant; /* wlm_rule_spell */
  const char *why;
} wlm_rule;

/* The rule's variant for n columns (of a head, in an sddmm) and each vector that it may have, number = 0, 1, ... from
 * the longest on; 0 behind the last. */
int wlm_rule_spell(const wlm_rule *rule, int64_t n, int number, char variant[WLM_VARIANT_NAME]);

wlm_rule_kind wlm_rule_kind_of(const wlm_problem *problem);

extern const wlm_rule wlm_rules[];
extern const int wlm_rule_count;

#endif
