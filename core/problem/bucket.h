/* The bucket: matrices with about equal rows, non-zeros per row and CV, for which one kernel can be pinned. */
#pragma once

#include "core/base/status.h"

enum { WLMI_BUCKET_VERSION = 1, WLMI_BUCKET_NO_NNZ = -128 };

typedef struct wlmi_bucket {
  int version;
  int log2_rows;      /* floor(log2 rows); -1 where rows = 0 */
  int half_log2_mean; /* floor(2 log2(nnz / rows)), lower than any other (WLMI_BUCKET_NO_NNZ) where nnz = 0 */
  int cv_class;       /* 0: cv < 0.5, 1: < 1.5, 2: < 4, 3: < 16, 4: more */
} wlmi_bucket;

void wlmi_bucket_of(const wlm_stats *stats, wlmi_bucket *bucket);

/* "v1 rows=14 mean=6 cv=0" and back; the text may also have commas instead of spaces. parse returns 0 if the text is no
 * bucket. */
enum { WLMI_BUCKET_TEXT = 64 };
void wlmi_bucket_print(const wlmi_bucket *bucket, char text[WLMI_BUCKET_TEXT]);
int wlmi_bucket_parse(const char *text, wlmi_bucket *bucket);
/* Why no matrix can be in that bucket, as a message; NULL = one can. */
const char *wlmi_bucket_fault(const wlmi_bucket *bucket);
