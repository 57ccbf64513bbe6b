/* Every candidate gets a sort key: its rank, its prediction, and its position in a shuffle. So without predictions a
 * budget leaves out random candidates, the same ones for the same seed. */
#include "select/order.h"

#include <math.h>

#include "core/problem/sampling.h"

enum { PRESENT, RULE, PREDICTED, UNKNOWN, DOUBTFUL };
static const double slow = 2, spreads = 2;

static int rank_of(const wlmi_expectation *e) {
  if (e->doubtful) return DOUBTFUL;
  return e->present ? PRESENT : e->rule ? RULE : e->seconds > 0 ? PREDICTED : UNKNOWN;
}

static int is_before(const wlmi_expectation *a, const wlmi_expectation *b) {
  const int left = rank_of(a), right = rank_of(b);
  return left != right ? left < right : (left == PREDICTED || left == DOUBTFUL) && a->seconds < b->seconds;
}

/* The predicted time divided by the limit; above 1 the candidate is doubtful. */
static double excess(const wlmi_expectation *e, const wlmi_doubt *doubt) {
  if (e->present || e->rule || e->doubtful) return 0;
  return e->seconds / (slow * exp(spreads * doubt->spread) * (e->prepares ? doubt->best : doubt->plain));
}

int64_t wlmi_candidates_doubt(wlmi_expectation *expected, int64_t count, const wlmi_doubt *doubt, int64_t most) {
  for (int64_t marked = 0; marked < most; marked++) {
    int64_t slowest = -1;
    double worst = 1;
    for (int64_t i = 0; i < count; i++) {
      const double its = excess(&expected[i], doubt);
      if (!(its > worst)) continue;
      slowest = i;
      worst = its;
    }
    if (slowest < 0) return marked;
    expected[slowest].doubtful = 1;
  }
  return most;
}

static void shuffle(int64_t count, uint64_t seed, int64_t *order) {
  for (int64_t i = 0; i < count; i++) order[i] = i;
  for (int64_t i = count - 1; i > 0; i--) {
    const int64_t j = (int64_t)(wlmi_sample_hash(seed + 1, i) % (uint64_t)(i + 1)), moved = order[i];
    order[i] = order[j];
    order[j] = moved;
  }
}

/* Insertion sort: there are a few hundred candidates, and equal ones must keep their shuffled order. */
void wlmi_candidate_order(const wlmi_expectation *expected, int64_t count, uint64_t seed, int64_t *order) {
  shuffle(count, seed, order);
  for (int64_t i = 1; i < count; i++) {
    const int64_t candidate = order[i];
    int64_t at = i;
    for (; at > 0 && is_before(&expected[candidate], &expected[order[at - 1]]); at--) order[at] = order[at - 1];
    order[at] = candidate;
  }
}
