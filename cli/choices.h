/* What several ways of choosing would take for the tuned matrices of a device class. All times were measured before; no
 * device is used. Only kernels that need no preparing are considered. */
#pragma once

#include "select/classes.h"

typedef enum wlmi_way {
  WLM_WAY_RULES,     /* the built-in rules */
  WLM_WAY_BORROWED,  /* the nearest bucket, or else the rules, without the measurements of this matrix */
  WLM_WAY_PREDICTED, /* the model, trained on other matrices */
  WLM_WAY_OTHERS,    /* the steps without the measurements of this operator on any matrix, and without models */
  WLM_WAYS
} wlmi_way;

extern const char *const wlmi_way_names[WLM_WAYS];

typedef struct wlmi_choices {
  const wlmi_measured *chosen[WLM_WAYS]; /* NULL = the way's choice was not measured */
} wlmi_choices;

/* Makes the choices of each case of of->choices.matrices; wlmi_free them. They point into the class. l2_bytes: the
 * device's, for training models; 0 = no model is trained. */
wlm_status wlmi_choices_make(const wlmi_class *of, int64_t l2_bytes, wlmi_choices **choices);
