/* Row lengths of real graphs, of roads as well as social networks, are close to a log-normal distribution: with the
 * mean and the CV of a published graph it predicts the longest row within a factor of two. This file computes it with
 * integers. The logarithm of a length is a sum of STEPS fair coins. So class t, counted from the longest rows, holds a
 * share C(STEPS, t) / 2^STEPS of the rows, and lengths fall by a constant ratio from class to class. Within a class the
 * length falls linearly with the rank; it is clipped to [least, longest].
 *
 * The longest row is given. The median and the ratio are free; they determine nnz and CV, which grow with them, so two
 * nested bisections find both. Sums are evaluated at about 1,500 ranks: all of the first few hundred, then at growing
 * strides, because the first rows carry most of the sum of squares. Lengths are fixed point. Rounding carries its
 * remainder to the next rank, which keeps sums exact and adds f (1 - f) to the square of a length with the fraction f.
 */
#include "core/synth/degrees.h"

enum { STEPS = 60, KNOTS = STEPS + 2, EXACT_RANKS = 256 };
enum { LENGTH_BITS = 20, RANK_BITS = 16, RATIO_BITS = 24 };
#define LENGTH_ONE (INT64_C(1) << LENGTH_BITS)
#define RATIO_ONE  (INT64_C(1) << RATIO_BITS)

typedef __int128 wide;

typedef struct curve {
  int64_t rows, least, longest; /* least and longest as lengths in fixed point */
  int64_t rank[KNOTS];          /* where class t begins, fixed point, ascending from 0 to rows */
  int64_t length[KNOTS];        /* the length there, fixed point, descending */
} curve;

/* The shares of the classes, summed up: row STEPS of Pascal's triangle. */
static void place_knots(curve *c) {
  int64_t binomial = 1, sum = 0;
  for (int t = 0; t < KNOTS; t++) {
    c->rank[t] = (int64_t)(((wide)sum * c->rows) >> (STEPS - RANK_BITS));
    sum += binomial;
    binomial = (int64_t)((wide)binomial * (STEPS - t) / (t + 1));
  }
}

static void shape(curve *c, int64_t median, int64_t ratio) {
  wide up = median, down = median;
  c->length[STEPS / 2] = median;
  for (int t = STEPS / 2 - 1; t >= 0; t--) {
    up = up * ratio >> RATIO_BITS;
    if (up > c->longest) up = c->longest;
    c->length[t] = (int64_t)up;
  }
  for (int t = STEPS / 2 + 1; t < KNOTS; t++) {
    down = (down << RATIO_BITS) / ratio;
    c->length[t] = (int64_t)down;
  }
}

/* Length at a rank in fixed point; *t is the class to look from, for callers whose ranks ascend. */
static int64_t length_at(const curve *c, int64_t rank, int *t) {
  while (*t < KNOTS - 2 && c->rank[*t + 1] <= rank) ++*t;
  int64_t width = c->rank[*t + 1] - c->rank[*t], fall = c->length[*t] - c->length[*t + 1];
  int64_t length = c->length[*t];
  if (width > 0) length -= (int64_t)((wide)fall * (rank - c->rank[*t]) / width);
  return length < c->least ? c->least : length > c->longest ? c->longest : length;
}

static int64_t middle_rank(int64_t first, int64_t count) { return (2 * first + count) << (RANK_BITS - 1); }

/* Sum and sum of squares of the rounded lengths, as fixed point of LENGTH_BITS and twice as many. */
static void moments(const curve *c, wide *sum, wide *squares) {
  int t = 0;
  *sum = c->longest;
  *squares = (wide)c->longest * c->longest;
  for (int64_t first = 1, count; first < c->rows; first += count) {
    count = 1 + first / EXACT_RANKS;
    if (count > c->rows - first) count = c->rows - first;
    int64_t length = length_at(c, middle_rank(first, count), &t), fraction = length & (LENGTH_ONE - 1);
    *sum += (wide)count * length;
    *squares += (wide)count * ((wide)length * length + (wide)fraction * (LENGTH_ONE - fraction));
  }
}

/* The largest median with a sum of at most nnz, given the ratio; returns the sum of squares that goes with it. */
static wide solve_median(curve *c, int64_t ratio, int64_t nnz) {
  int64_t low = 0, high = c->longest + 1;
  wide sum, squares;
  while (high - low > 1) {
    int64_t median = low + (high - low) / 2;
    shape(c, median, ratio);
    moments(c, &sum, &squares);
    if (sum <= (wide)nnz << LENGTH_BITS)
      low = median;
    else
      high = median;
  }
  shape(c, low, ratio);
  moments(c, &sum, &squares);
  return squares;
}

static void solve(curve *c, const wlmi_degrees_wanted *wanted) {
  const int64_t million = 1000000;
  wide wanted_squares = (wide)wanted->nnz * wanted->nnz / wanted->rows *
                        ((wide)million * million + wanted->cv * wanted->cv) / ((wide)million * million);
  int64_t low = RATIO_ONE, high = 4 * RATIO_ONE;
  while (high - low > 1) {
    int64_t ratio = low + (high - low) / 2;
    if (solve_median(c, ratio, wanted->nnz) <= wanted_squares << (2 * LENGTH_BITS))
      low = ratio;
    else
      high = ratio;
  }
  solve_median(c, low, wanted->nnz);
}

/* Distributes the remainder of rounding, one per row. */
static void settle(const wlmi_degrees_wanted *wanted, int64_t missing, int32_t *degrees) {
  while (missing != 0)
    for (int64_t i = 1; i < wanted->rows && missing != 0; i++) {
      int step = missing > 0 ? degrees[i] < wanted->longest : -(degrees[i] > wanted->least);
      degrees[i] += step;
      missing -= step;
    }
}

wlm_status wlmi_degrees_make(const wlmi_degrees_wanted *wanted, int32_t *degrees) {
  curve c = {.rows = wanted->rows, .least = wanted->least << LENGTH_BITS, .longest = wanted->longest << LENGTH_BITS};
  int64_t carried = 0, sum = wanted->longest;
  int t = 0;
  if (wanted->rows < 1 || wanted->rows > INT32_MAX || wanted->longest > INT32_MAX || wanted->least < 0 ||
      wanted->longest < wanted->least || wanted->nnz > (wide)wanted->rows * wanted->longest ||
      wanted->nnz < wanted->longest + (wanted->rows - 1) * wanted->least)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%lld rows of %lld to %lld entries cannot have %lld entries",
                     (long long)wanted->rows, (long long)wanted->least, (long long)wanted->longest,
                     (long long)wanted->nnz);
  place_knots(&c);
  solve(&c, wanted);
  degrees[0] = (int32_t)wanted->longest;
  for (int64_t i = 1; i < wanted->rows; i++) {
    carried += length_at(&c, middle_rank(i, 1), &t);
    degrees[i] = (int32_t)(carried >> LENGTH_BITS);
    carried &= LENGTH_ONE - 1;
    sum += degrees[i];
  }
  settle(wanted, wanted->nnz - sum, degrees);
  return WLM_OK;
}
