#include "support/covering_kinds.h"

#include <string.h>

static int has_family_of(const covering_entry *a, const covering_entry *b) {
  return strcspn(a->variant, "/") == strcspn(b->variant, "/") &&
         !strncmp(a->variant, b->variant, strcspn(a->variant, "/")) &&
         a->spec.problem.operation == b->spec.problem.operation;
}

static int is_alike(const covering_entry *a, const covering_entry *b) {
  const wlm_problem *p = &a->spec.problem, *q = &b->spec.problem;
  return has_family_of(a, b) && !p->transpose == !q->transpose && !p->want_argmax == !q->want_argmax &&
         !p->sampling.sample == !q->sampling.sample && (p->heads > 1) == (q->heads > 1) && !a->own == !b->own;
}

static int has_type_of(const covering_entry *a, const covering_entry *b) {
  return has_family_of(a, b) && a->spec.problem.dense_type == b->spec.problem.dense_type;
}

/* The first entry that is like entry `index`. */
static int64_t first_of(const covering *set, int64_t index,
                        int (*is_like)(const covering_entry *, const covering_entry *)) {
  int64_t first = 0;
  while (!is_like(&set->entries[first], &set->entries[index])) first++;
  return first;
}

void covering_mark_sample(covering *set) {
  for (int64_t i = 0; i < set->count; i++) {
    set->entries[i].in_families = first_of(set, i, has_family_of) == i;
    set->entries[i].in_sample = first_of(set, i, is_alike) == i || first_of(set, i, has_type_of) == i;
  }
}

void covering_keep_sample(covering *set, test_shard shard) {
  int64_t kept = 0;
  for (int64_t i = 0; i < set->count; i++)
    if (set->entries[i].in_sample) set->entries[kept++] = set->entries[i];
  set->count = test_shard_count(shard, kept);
  for (int64_t k = 0; k < set->count; k++) set->entries[k] = set->entries[test_shard_index(shard, k)];
}
