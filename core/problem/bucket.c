#include "core/problem/bucket.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* d = m * 2^e with m in [0.5, 1): log2 d lies in [e - 1, e), and its half is decided by m against sqrt(1/2). */
static int half_log2(double d) {
  int exponent;
  double m = frexp(d, &exponent);
  return 2 * (exponent - 1) + (m * m >= 0.5);
}

void wlmi_bucket_of(const wlm_stats *stats, wlmi_bucket *bucket) {
  static const double cv_limits[] = {0.5, 1.5, 4.0, 16.0};
  int empty = stats->rows <= 0 || stats->nnz <= 0;
  *bucket = (wlmi_bucket){WLMI_BUCKET_VERSION, -1, WLMI_BUCKET_NO_NNZ, 0};
  for (int64_t rows = stats->rows; rows > 0; rows >>= 1) bucket->log2_rows++;
  if (!empty) bucket->half_log2_mean = half_log2((double)stats->nnz / (double)stats->rows);
  for (int i = 0; i < 4; i++) bucket->cv_class += stats->cv >= cv_limits[i];
}

void wlmi_bucket_print(const wlmi_bucket *bucket, char text[WLMI_BUCKET_TEXT]) {
  snprintf(text, WLMI_BUCKET_TEXT, "v%d rows=%d mean=%d cv=%d", bucket->version, bucket->log2_rows,
           bucket->half_log2_mean, bucket->cv_class);
}

/* Rows and non-zeros are below 2^63. */
const char *wlmi_bucket_fault(const wlmi_bucket *b) {
  const int empty = b->half_log2_mean == WLMI_BUCKET_NO_NNZ;
  if (b->version < 1 || b->version > WLMI_BUCKET_VERSION) return "buckets of that version are not known here";
  if (b->log2_rows < -1 || b->log2_rows > 62) return "rows must be -1 to 62, the logarithm to base 2";
  if (!empty && (b->log2_rows < 0 || b->half_log2_mean < -126 || b->half_log2_mean > 126))
    return "mean must be -126 to 126, twice the logarithm to base 2, or -128 where there are no non-zeros";
  return b->cv_class < 0 || b->cv_class > 4 ? "cv must be 0 to 4, a class" : NULL;
}

/* sscanf accepts more than print writes, so the bucket is printed again and compared. */
int wlmi_bucket_parse(const char *text, wlmi_bucket *bucket) {
  char spaced[WLMI_BUCKET_TEXT], printed[WLMI_BUCKET_TEXT];
  if (strlen(text) >= sizeof spaced) return 0;
  strcpy(spaced, text);
  for (char *comma; (comma = strchr(spaced, ','));) *comma = ' ';
  if (sscanf(spaced, "v%3d rows=%3d mean=%4d cv=%1d", &bucket->version, &bucket->log2_rows, &bucket->half_log2_mean,
             &bucket->cv_class) != 4)
    return 0;
  wlmi_bucket_print(bucket, printed);
  return !strcmp(printed, spaced);
}
