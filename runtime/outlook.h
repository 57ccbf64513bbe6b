/* What is expected of the candidates for a problem before they are measured. */
#ifndef WLM_RUNTIME_OUTLOOK_H
#define WLM_RUNTIME_OUTLOOK_H

#include "runtime/context.h"

typedef struct wlm_outlook {
  char present[WLM_VARIANT_NAME]; /* what a plan would be given now, */
  char rule[WLM_VARIANT_NAME];    /* and what it would be if nothing had ever been tuned; "" = nothing */
  /* By the model that knows the nearest cases, of this class of devices or a borrowed one. */
  double distance;           /* to the nearest case of its training; infinite = there is no model */
  double spread;             /* of log(time) around what it predicts */
  int borrowed;              /* it was trained on another class of devices */
  wlm_candidate *candidates; /* all that are valid */
  double *seconds;           /* that it predicts for each; 0 = it cannot tell */
  int64_t count;
} wlm_outlook;

/* `stats` are those of op(A). Compiles and loads nothing. */
wlm_status wlm_context_outlook(wlm_context *context, const wlm_stats *stats, const wlm_spec *spec,
                               wlm_outlook *outlook);
void wlm_outlook_release(wlm_outlook *outlook); /* also of a zeroed one */
/* Index of a variant among the candidates; -1 = it is none. */
int64_t wlm_outlook_find(const wlm_outlook *outlook, const char *variant);

/* Where the cases lie that were tuned on this class of devices for problems of the spec's class. wlm_free the list. */
wlm_status wlm_context_known_places(wlm_context *context, const wlm_spec *spec, wlm_place **places, int64_t *count);

#endif
