/* The built-in rules: the kernel that runs where neither a measurement nor a model decides, and the one that a model
 * has to beat. */
#pragma once

#include "core/problem/program.h"

typedef struct wlmi_rule {
  wlmi_target target;
  int64_t max_n;       /* holds for n <= max_n */
  double min_cv;       /* and cv >= min_cv */
  int64_t max_size;    /* and the non-zeros, or the rows of a sampled product, are no more */
  int64_t max_longest; /* and no row has more edges */
  double min_mean;     /* and rows have as many edges on average */
  int64_t min_calls;   /* 0, or for a variant that must be prepared: and at least as many calls are expected */
  double stays;        /* unless another variant is predicted to be faster by this multiple of the model's spread */
  const char *variant; /* wlmi_rule_spell */
  const char *why;
} wlmi_rule;

/* Writes the rule's variant for n columns (for an SDDMM: the columns of one head). number = 0, 1, ... selects the
 * vector length, from the longest on, or the tile, from the narrowest on; returns 0 behind the last. */
int wlmi_rule_spell(const wlmi_rule *rule, const wlm_problem *problem, int64_t n, int number,
                    char variant[WLMI_VARIANT_NAME]);

extern const wlmi_rule wlmi_rules[];
extern const int wlmi_rule_count;
