/* What two stores disagree on. */
#ifndef WLM_DB_DIFF_H
#define WLM_DB_DIFF_H

#include "db/classes.h"
#include "db/content.h"

/* A matrix, problem and N whose winners differ, or that only one side knows a winner of. */
typedef struct wlm_choice_difference {
  const char *device_class;
  const wlm_choice *a, *b; /* NULL = that side has none */
} wlm_choice_difference;

typedef struct wlm_pin_difference {
  const wlm_pin_record *a, *b; /* NULL = not pinned on that side */
} wlm_pin_difference;

typedef struct wlm_diff {
  int64_t only_a, only_b, both;             /* measurements */
  int64_t recorded_only_a, recorded_only_b; /* recorded problems */
  wlm_choice_difference *choices;
  int64_t choice_count, choice_capacity;
  wlm_pin_difference *pins;
  int64_t pin_count, pin_capacity;
  wlm_class *classes[2]; /* of a and b; what the above point into */
  int64_t class_counts[2];
} wlm_diff;

/* The contents as wlm_content_load gave them, which must outlive the diff; their records are reordered. */
wlm_status wlm_diff_make(wlm_content *a, wlm_content *b, wlm_diff *diff);
void wlm_diff_release(wlm_diff *diff); /* also of a zeroed one */

#endif
