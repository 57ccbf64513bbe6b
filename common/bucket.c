#include "common/bucket.h"

#include <math.h>

/* d = m * 2^e with m in [0.5, 1): log2 d lies in [e - 1, e), and its half is decided by m against sqrt(1/2). */
static int half_log2(double d) {
  int exponent;
  double m = frexp(d, &exponent);
  return 2 * (exponent - 1) + (m * m >= 0.5);
}

void wlm_bucket_of(const wlm_stats *stats, wlm_bucket *bucket) {
  static const double cv_limits[] = {0.5, 1.5, 4.0, 16.0};
  int empty = stats->rows <= 0 || stats->nnz <= 0;
  *bucket = (wlm_bucket){WLM_BUCKET_VERSION, -1, WLM_BUCKET_NO_NNZ, 0};
  for (int64_t rows = stats->rows; rows > 0; rows >>= 1) bucket->log2_rows++;
  if (!empty) bucket->half_log2_mean = half_log2((double)stats->nnz / (double)stats->rows);
  for (int i = 0; i < 4; i++) bucket->cv_class += stats->cv >= cv_limits[i];
}
