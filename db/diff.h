/* The differences of two stores. */
#pragma once

#include "db/store.h"
#include "select/classes.h"

/* A matrix, problem and N whose winners differ, or for which only one side has a winner. */
typedef struct wlmi_choice_difference {
  const char *device_class;
  const wlmi_case *a, *b; /* NULL = that side has none */
} wlmi_choice_difference;

typedef struct wlmi_pin_difference {
  const wlmi_pin_record *a, *b; /* NULL = not pinned on that side */
} wlmi_pin_difference;

typedef struct wlmi_overlap {
  int64_t only_a, only_b, both;
} wlmi_overlap;

typedef struct wlmi_diff {
  wlmi_overlap measurements, recorded;
  wlmi_choice_difference *choices;
  int64_t choice_count, choice_capacity;
  wlmi_pin_difference *pins;
  int64_t pin_count, pin_capacity;
  wlmi_class *classes[2]; /* of a and b; the pointers above point into them */
  int64_t class_counts[2];
} wlmi_diff;

/* The contents as wlmi_content_load gave them, which must outlive the diff; their records are reordered. */
wlm_status wlmi_diff_make(wlmi_content *a, wlmi_content *b, wlmi_diff *diff);
void wlmi_diff_release(wlmi_diff *diff); /* also of a zeroed one */
