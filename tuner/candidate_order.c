/* Every candidate has a key: its rank, what is predicted, and its place in a shuffle, so that where nothing is known a
 * budget cuts a random part, and the same one for the same seed. */
#include "tuner/candidate_order.h"

#include <stdlib.h>

#include "common/sampling.h"

enum { PRESENT, RULE, PREDICTED, UNKNOWN };

static int rank_of(const wlm_expectation *e) {
  return e->present ? PRESENT : e->rule ? RULE : e->seconds > 0 ? PREDICTED : UNKNOWN;
}

static int is_before(const wlm_expectation *a, const wlm_expectation *b) {
  const int left = rank_of(a), right = rank_of(b);
  return left != right ? left < right : left == PREDICTED && a->seconds < b->seconds;
}

static void shuffle(int64_t count, uint64_t seed, int64_t *order) {
  for (int64_t i = 0; i < count; i++) order[i] = i;
  for (int64_t i = count - 1; i > 0; i--) {
    const int64_t j = (int64_t)(wlm_sample_hash(seed + 1, i) % (uint64_t)(i + 1)), moved = order[i];
    order[i] = order[j];
    order[j] = moved;
  }
}

/* By insertion: some hundred candidates, and equal ones stay as they were shuffled. */
void wlm_candidate_order(const wlm_expectation *expected, int64_t count, uint64_t seed, int64_t *order) {
  shuffle(count, seed, order);
  for (int64_t i = 1; i < count; i++) {
    const int64_t candidate = order[i];
    int64_t at = i;
    for (; at > 0 && is_before(&expected[candidate], &expected[order[at - 1]]); at--) order[at] = order[at - 1];
    order[at] = candidate;
  }
}
