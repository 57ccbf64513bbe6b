/* INPUTs that cannot be read, among others that can: the command goes on without them, names them at the end, and ends
 * with exit code 1. */
#pragma once

#include "cli/options.h"
#include "cli/report.h"

typedef struct wlmi_left_out {
  wlmi_text names; /* "a.mtx, b.txt" */
  int count;
} wlmi_left_out;

/* Prints the error of an input, the thread's detail text, and puts it into a JSON report. Returns WLM_OK, or `status`
 * where the command has no other input. */
wlm_status wlmi_left_out_add(wlmi_left_out *left_out, const wlmi_cli_options *options, const char *input,
                             wlm_status status, wlmi_report *report);
/* Ends a command with this status: one that succeeded fails if anything was left out. Releases the names. */
wlm_status wlmi_left_out_end(wlmi_left_out *left_out, const wlmi_cli_options *options, wlm_status status,
                             wlmi_report *report);
