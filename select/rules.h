/* The built-in rules: which variant to run where nothing was measured. */
#pragma once

#include "core/problem/program.h"

/* The kinds of problems that rules are for. For a plain product in 16 bits, rules of both HALVES and PLAIN hold; for a
 * message that ranks as a product (select/features.h), rules of these and of MESSAGE, which come last. */
typedef enum wlmi_rule_kind {
  WLMI_RULE_PLAIN,
  WLMI_RULE_SAMPLED,
  WLMI_RULE_SDDMM,
  WLMI_RULE_MESSAGE,
  WLMI_RULE_HALVES
} wlmi_rule_kind;

typedef struct wlmi_rule {
  wlmi_target target;
  int kind;
  int64_t max_n;       /* holds for n <= max_n */
  double min_cv;       /* and cv >= min_cv */
  int64_t max_size;    /* and the non-zeros, or the rows of a sampled product, are no more */
  int64_t max_longest; /* and no row has more edges */
  const char *variant; /* wlmi_rule_spell */
  const char *why;
  int64_t min_calls; /* 0, or for a variant that must be prepared: and at least as many calls are expected */
  double min_mean;   /* and rows have as many edges on average */
} wlmi_rule;

/* Writes the rule's variant for n columns (for an SDDMM: the columns of one head). number = 0, 1, ... selects the
 * vector length, from the longest on, or the tile, from the narrowest on; returns 0 behind the last. */
int wlmi_rule_spell(const wlmi_rule *rule, int64_t n, int number, char variant[WLMI_VARIANT_NAME]);

wlmi_rule_kind wlmi_rule_kind_of(const wlm_problem *problem);

extern const wlmi_rule wlmi_rules[];
extern const int wlmi_rule_count;
