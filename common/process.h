/* Other programs, run without a shell. */
#ifndef WLM_COMMON_PROCESS_H
#define WLM_COMMON_PROCESS_H

#include "common/text.h"

/* Runs argv[0], found in PATH, and waits for it: its exit status, 1 where a signal ended it, or -1 where it did not
 * start. It reads the open file `input` (-1 = nothing); what it says goes into the file `output` (NULL = to where
 * this program's own words go). */
int wlmi_process_run(char *const argv[], int input, const char *output);

/* Appends the path of the file that wlmi_process_run would run for `name`. Appends nothing where PATH has none. */
void wlmi_process_find(const char *name, wlmi_text *path);

#endif
