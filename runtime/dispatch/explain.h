/* Explains why a plan has its kernel, as text and as JSON. Both are written from the same facts. */
#pragma once

#include "runtime/dispatch/plan.h"

/* Appends everything as lines for people. */
void wlmi_explain_text(wlmi_text *text, const wlm_plan *plan);
/* Appends what decided. */
void wlmi_explain_step(wlmi_text *text, const wlmi_decision *decision);
/* Prints the bucket of a matrix. */
void wlmi_explain_bucket(const wlm_stats *stats, char text[WLMI_BUCKET_TEXT]);
/* Appends everything as one line of JSON. */
void wlmi_explain_json(wlmi_text *text, const wlm_plan *plan);
