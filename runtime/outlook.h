/* What is expected of the candidates for a problem before they are measured. */
#ifndef WLM_RUNTIME_OUTLOOK_H
#define WLM_RUNTIME_OUTLOOK_H

#include "runtime/context.h"

typedef struct wlmi_outlook {
  char present[WLM_VARIANT_NAME]; /* what a plan would be given now, */
  char rule[WLM_VARIANT_NAME];    /* and what it would be if nothing had ever been tuned; "" = nothing */
  /* By the model that knows the nearest cases, of this class of devices or a borrowed one. */
  double distance;            /* to the nearest case of its training; infinite = there is no model */
  double spread;              /* of log(time) around what it predicts */
  int borrowed;               /* it was trained on another class of devices */
  wlmi_candidate *candidates; /* all that are valid */
  double *seconds;            /* that it predicts for each; 0 = it cannot tell */
  int64_t count;
} wlmi_outlook;

/* `stats` are those of op(A). Compiles and loads nothing. */
wlm_status wlmi_context_outlook(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec,
                                wlmi_outlook *outlook);
void wlmi_outlook_release(wlmi_outlook *outlook); /* also of a zeroed one */
/* Index of a variant among the candidates; -1 = it is none. */
int64_t wlmi_outlook_find(const wlmi_outlook *outlook, const char *variant);

/* Where the cases lie that were tuned on this class of devices for problems of the spec's class. wlmi_free the list. */
wlm_status wlmi_context_known_places(wlm_context *context, const wlmi_spec *spec, wlmi_place **places, int64_t *count);

#endif
