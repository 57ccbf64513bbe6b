/* A variant and its time: of a candidate on one matrix, known from before or measured by a search. */
#pragma once

#include "core/problem/variant.h"

enum { WLM_PLAIN, WLM_PREPARED, WLM_KINDS }; /* whether a candidate must be prepared */

typedef struct wlmi_timed {
  double seconds;  /* of one call; 0 = not measured yet; infinite = it failed */
  double expected; /* seconds that a model predicts; 0 = unknown */
  int samples;     /* from which `seconds` was computed */
  int kind;
  int is_known; /* the time is from the store and need not be measured again */
  char variant[WLM_VARIANT_NAME];
} wlmi_timed;
