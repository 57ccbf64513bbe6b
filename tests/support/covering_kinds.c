#include "support/covering_kinds.h"

#include <string.h>

static int is_alike(const covering_entry *a, const covering_entry *b) {
  const wlm_problem *p = &a->spec.problem, *q = &b->spec.problem;
  return strcspn(a->variant, "/") == strcspn(b->variant, "/") &&
         !strncmp(a->variant, b->variant, strcspn(a->variant, "/")) && p->operation == q->operation &&
         !p->transpose == !q->transpose && !p->want_argmax == !q->want_argmax &&
         !p->sampling.sample == !q->sampling.sample && (p->heads > 1) == (q->heads > 1) && !a->own == !b->own;
}

void covering_mark_sample(covering *set) {
  for (int64_t i = 0; i < set->count; i++) {
    int64_t other = 0;
    while (!is_alike(&set->entries[other], &set->entries[i])) other++;
    set->entries[i].in_sample = other == i;
  }
}

void covering_keep_sample(covering *set, test_shard shard) {
  int64_t kept = 0;
  for (int64_t i = 0; i < set->count; i++)
    if (set->entries[i].in_sample) set->entries[kept++] = set->entries[i];
  set->count = test_shard_count(shard, kept);
  for (int64_t k = 0; k < set->count; k++) set->entries[k] = set->entries[test_shard_index(shard, k)];
}
